from xml.etree import ElementTree as Tree

from tests.report.junit_schema import check
from tests.report.made_up_claims import with_claims
from tests.report.made_up_verdict import verdict

from velodrome.model.claim import Judgement
from velodrome.report import junit


def test_each_claim_is_a_case_and_one_that_does_not_hold_fails() -> None:
    judged = with_claims()
    root = Tree.fromstring(junit.claims_text([judged]))
    check(root)
    cases = {str(case.get("name")): case for case in root.iter("testcase")}
    assert len(cases) == len(judged.claims)
    for claim in judged.claims:
        case = next(case for name, case in cases.items() if name.startswith(claim.claim.name + " "))
        assert (case.find("failure") is not None) == (claim.judgement is Judgement.FAILS)
        assert (case.find("skipped") is not None) == (claim.judgement is Judgement.CANNOT_TELL)


def test_a_study_without_claims_says_so() -> None:
    root = Tree.fromstring(junit.claims_text([verdict()]))
    check(root)
    assert root.findtext(".//system-out") == "This study has no claims."


def test_each_study_is_a_suite() -> None:
    root = Tree.fromstring(junit.claims_text([with_claims(), verdict()]))
    check(root)
    assert len(root.findall("testsuite")) == 2
