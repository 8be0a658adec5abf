"""Recipes become source code: steps spelled in an idiom, framed by an interface, compiled once at start.

    def app(environ, start_response):               # the frame: interfaces/wsgi.py
        if ask('http://127.0.0.1:9/?velodrome-latency=200ms') != 200:  # a step: codegen/steps.py
            start_response('502 Bad Gateway', [('Content-Length', '0')])
            return ()
        start_response('200 OK', [('Content-Type', TYPE), ('Content-Length', '84')])
        return (BODY,)

What differs between blocking and awaiting code is the word before a wait (nothing, `await`,
`yield from`) and the functions behind the names (`time.sleep` or `asyncio.sleep`): an `Idiom`. So the
spelling of a step is written once, and a frame never looks into one.
"""
