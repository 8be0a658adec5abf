"""The network between generator and server: two network namespaces of our own, joined as a `Link` says.

with site.opened(link, cpus=placed.load_cpus, seed=1) as there:
    with entered(there.server): ...   # what is started here is in the server's network
    with entered(there.client): ...   # what connects from here goes over the link

`docs/link.md` tells how it works, how exact it is, and what it cannot imitate.
"""
