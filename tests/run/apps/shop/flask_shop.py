from flask import Flask, request


def create_app():
    app = Flask(__name__)

    @app.get("/cart")
    def cart():
        return {"id": request.args.get("id"), "items": [1, 2, 3]}

    @app.post("/orders")
    def order():
        return {"ordered": request.get_json()["id"]}, 201

    return app


app = create_app()
