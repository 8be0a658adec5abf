"""A server that ends idle connections sooner than the proxy before it: a request that meets the end is lost."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Probe, Treatment
from velodrome.model.symptoms import Symptoms

PROXY_S = 60.0
"""How long proxies keep idle connections to the server: nginx, and the load balancers of the large clouds."""
LONGEST_S = 30.0
"""What a server keeps longer is not waited for."""
CURED_S = 75
AFTER_S = 0.005


def screen(seen: Symptoms) -> Screened:
    """Look how long idle connections are kept, as far as the stack says."""
    setting = seen.setting
    kept_s = setting.keeps_idle_s
    if not setting.keeps_alive:
        return Absent("it ends each connection with the answer, and says so")
    if kept_s is None:
        return Unknown("how long this server keeps idle connections is not known")
    sentence = f"idle connections are ended after {kept_s:g} s"
    evidence = Evidence("counter", sentence, {"keeps_idle_s": kept_s})
    if kept_s >= PROXY_S:
        return Absent(f"{sentence}, and a proxy ends them before that, after {PROXY_S:g} s", (evidence,))
    if not setting.plain or kept_s > LONGEST_S:
        return Unknown(f"{sentence}: that cannot be tried in the time there is")
    cure = Cure(
        "keep idle connections longer than the proxy does, or have the proxy end them sooner",
        "the server's command line",
        f"keep-alive {kept_s:g} s",
        f"--knob keepalive={CURED_S}",
    )
    probe = Probe(
        "reuse",
        f"16 connections, each used again up to {1000 * AFTER_S:g} ms after its end, or after {kept_s + 1.5:g} s",
        "lost",
        {"idle_s": kept_s, "after_s": AFTER_S},
        # A tenth of that time is far from the end.
        unprovoked={"idle_s": 0.0, "longer_s": kept_s / 10},
        seconds=kept_s + 1.8,
    )
    longer = Treatment(f"keep-alive of {CURED_S} s", knobs={"keepalive": CURED_S})
    cured = "keepalive" in setting.knobs
    return Suspect(
        0.9,
        f"{sentence}, and proxies keep them for {PROXY_S:g} s",
        (
            Experiment(
                longer if cured else AS_IT_IS,
                0,
                cure,
                proof="cure" if cured else "dose",
                probe=probe,
            ),
        ),
        (evidence,),
        loss=0.1,
    )


fault = Fault(
    "keepalive-race",
    "a 502 every some 10 000 requests: the server ends idle connections sooner than the proxy; keep them longer",
    ("gunicorn#3323", "ingress-nginx#3099"),
    "A proxy sends a request on a connection that the server has just ended.",
    "Connections used again about when the server ends them lose requests; with a longer keep-alive they lose none.",
    screen,
)
