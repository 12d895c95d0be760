"""Damaged files, the same ones each time: every reader ends in a result or in a sentence."""

import pytest
from fuzzed_files import READERS, Corpus

EXAMPLES = 40


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("name", READERS)
def test_a_result_or_a_sentence(corpus, name):
    assert corpus.read(name, corpus.whole[name]) == "result"
    ended = corpus.fuzz(name, EXAMPLES)
    assert ended.total() >= EXAMPLES / 2


@pytest.mark.parametrize("name", READERS)
def test_nothing_at_all(corpus, name):
    corpus.read(name, b"")
