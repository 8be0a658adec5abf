"""A server that speaks MongoDB's protocol, where there is none: mongo-java-server, in memory, by Java and Maven.

with running(folder) as url:
    ...

Debian ships no MongoDB. Clients are tried against this; nothing is ever measured against it. It reports wire version 9
(MongoDB 4.4), the oldest that pymongo takes. Maven fetches the packages by their coordinates, once, into its own
repository; they are used only if each has the hash that is noted here.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

VERSION = "1.47.0"
FETCH_S, STOP_S = 300.0, 5.0
HASHES: Mapping[str, str] = {
    "mongo-java-server-1.47.0.jar": "37fc487ab0ef924dee0acdc62e2de1ef1daffa7eb2fdf9b56e5d2f3bdc2b909b",
    "mongo-java-server-core-1.47.0.jar": "9a34c9ad6ac6261906295481838256033ec1efc8c93a3e3828e5d47a006b0bd4",
    "mongo-java-server-memory-backend-1.47.0.jar": "82864f8a2ede1514f64c2cd3a70e8022c259eb3d78975cfa208c1668ac1f12bb",
    "netty-buffer-4.2.2.Final.jar": "4820eeb2d3db269b20b30711e3d7d21979664249aaf10fc67f90dee935810747",
    "netty-codec-4.2.2.Final.jar": "6a4ea3cedc831a377e20e32da5df4d2a47b954810e941138e3358e313db3a7f9",
    "netty-codec-base-4.2.2.Final.jar": "76987614ccb2fda7d3292b69ba5b61351f30e91bf5c7d8fa4b51bc32c9f67456",
    "netty-codec-compression-4.2.2.Final.jar": "005734e20aceb5e2c030033f7e042c81ee444497efd110cfca8de445642652ac",
    "netty-codec-marshalling-4.2.2.Final.jar": "ae8bb7a077ca02357c922e3abc1acf1bf191d5e2776721d69cbca50a16281096",
    "netty-codec-protobuf-4.2.2.Final.jar": "cfe0c7e6e68d83480a639b533eb7edaaf3252cfae8b73d0e362859673a4f9d97",
    "netty-common-4.2.2.Final.jar": "5d022f3acad74cb0f195f60213500a4000d1340e5e941edaf1a0e756686b9bae",
    "netty-handler-4.2.2.Final.jar": "d4ef582c78125457baa0cfa52992b5fb1bb9172d1a2c03b726e8b26e17d3fe2c",
    "netty-resolver-4.2.2.Final.jar": "fa7841ffe2e39d52251814fb8560d6936b10ae7c67453ee50426b83fd5170ba0",
    "netty-transport-4.2.2.Final.jar": "116d766a1af4722fe76a4cdaed969644985d44e08ec1337d2dbab697dd109603",
    "netty-transport-native-unix-common-4.2.2.Final.jar": (
        "aa8821a7ea2ca47f62740bd1f37d67deb97824cc77e76dde6ae2c439a923fc9d"
    ),
    "slf4j-api-2.0.17.jar": "7b751d952061954d5abfed7181c1f645d336091b679891591d63329c622eb832",
}
"""SHA-256 of every package: the server and what it needs."""
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>velodrome</groupId> <artifactId>stand-in</artifactId> <version>1</version>
<dependencies><dependency>
<groupId>de.bwaldvogel</groupId> <artifactId>mongo-java-server</artifactId> <version>{VERSION}</version>
</dependency></dependencies>
</project>
"""
PROGRAM = """
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

public final class StandIn {
    private enum Version implements MongoVersion {
        MONGO_4_4;

        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }
    }

    /** Prints its port, and serves until standard input ends. */
    public static void main(String[] arguments) throws Exception {
        MemoryBackend backend = new MemoryBackend();
        backend.version(Version.MONGO_4_4);
        MongoServer server = new MongoServer(backend);
        System.out.println(server.bind().getPort());
        while (System.in.read() >= 0) {
        }
        System.exit(0);
    }
}
"""


def missing() -> str:
    """Return why there can be none here; empty if there can."""
    lacking = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    return (
        f"there is no {' and no '.join(lacking)} (Debian: apt install default-jdk-headless maven)"
        if lacking
        else ""
    )


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Build it in an empty folder, serve until the end of the block, and yield its URL.

    Raises AssertionError for packages that are not those whose hashes are noted, CalledProcessError.
    """
    jars = _fetched(folder)
    (folder / "StandIn.java").write_text(PROGRAM)
    subprocess.run(
        ["javac", "-cp", f"{jars}/*", "-d", str(folder), str(folder / "StandIn.java")],
        check=True,
        timeout=FETCH_S,
    )
    argv = ["java", "-Xmx256m", "-cp", f"{jars}/*:{folder}", "StandIn"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield f"mongodb://127.0.0.1:{int(server.stdout.readline())}/velodrome"
        finally:
            server.stdin.close()
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()


def _fetched(folder: Path) -> Path:
    (folder / "pom.xml").write_text(POM)
    jars = folder / "jars"
    argv = [
        "mvn",
        "-B",
        "-q",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={jars}",
    ]
    alone = subprocess.run([*argv, "-o"], cwd=folder, capture_output=True, timeout=FETCH_S, check=False)
    if alone.returncode:  # not all is in Maven's own repository yet
        subprocess.run(argv, cwd=folder, check=True, timeout=FETCH_S)
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars.glob("*.jar")}
    assert found == HASHES, "other packages than those that were read"
    return jars
