"""What overrides may say once the file opens it is in docs/safety.md, by the keys' real names."""

from __future__ import annotations

import re

from app.docs_pages.safety_page import SAFETY_PAGE, opened, page
from app.overrides.overridable import closed
from app.properties.keys import OPENABLE, TABLE


def test_what_is_opened_is_what_the_rules_say() -> None:
    assert SAFETY_PAGE.read_text(encoding="utf-8") == page(), "run `python -m app.docs_pages.safety_page`"


def test_every_key_that_opens_by_a_word_and_no_other_is_named() -> None:
    named = {name for name in re.findall(r"`([^`]+)`", opened()) if name in TABLE}
    assert named == {name for name in TABLE if closed(name, False, ()) and not closed(name, False, OPENABLE)}
