import shop_pb2
import shop_pb2_grpc


class Shop(shop_pb2_grpc.ShopServicer):
    def Cart(self, request, context):
        return shop_pb2.CartReply(text=f"cart {request.id}")


class AwaitingShop(shop_pb2_grpc.ShopServicer):
    async def Cart(self, request, context):
        return shop_pb2.CartReply(text=f"cart {request.id}")


def add_to_server(server):
    shop_pb2_grpc.add_ShopServicer_to_server(Shop(), server)
