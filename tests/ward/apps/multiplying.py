"""`native-threads`: matrices multiplied by many threads of BLAS on few CPUs; cured by one."""

import numpy
from answering import answering
from threadpoolctl import threadpool_limits

SIZE = 160
left, right = (numpy.random.default_rng(seed).random((SIZE, SIZE)) for seed in (1, 2))


async def multiply():
    left @ right


def severe():
    threadpool_limits(4)
    return answering(multiply)


def cured():
    threadpool_limits(1)
    return answering(multiply)
