"""What a comparison refuses before anything is trained, and what it trains."""

import pytest

from regard.compare.cell_budget import parse_budget
from regard.compare.grid import make_cells, make_grid, parse_vary
from regard.errors import RegardError
from regard.tasks.registry import TASKS


def grid(task, vary, fixed=None, budget="steps=5"):
    spec = TASKS[task]
    return make_grid(spec, fixed or {}, parse_vary(spec, vary), parse_budget(budget))


def test_every_combination_with_every_seed_and_impossible_ones_apart():
    made = grid("translation", ["attention=none,dot", "model=recurrent,transformer"])
    assert [one.label for one in made.systems] == [
        "attention none, model recurrent",
        "attention dot, model recurrent",
        "attention dot, model transformer",
    ]
    assert list(made.impossible) == ["attention none, model transformer"]
    assert "requires attention" in made.impossible["attention none, model transformer"]
    cells = make_cells(made.systems, 2)
    assert [cell.seed for cell in cells] == [1, 1, 1, 2, 2, 2]
    assert len({cell.name for cell in cells}) == 6
    assert all(cell.system.options["steps"] == 5 for cell in cells)


def test_values_have_the_types_of_their_options():
    vary = parse_vary(
        TASKS["translation"],
        ["width=8,16", "--input-feeding=yes,no", "dropout=0,0.5", "normalize=softmax,top_k(2)"],
    )
    assert vary == {
        "width": [8, 16],
        "input_feeding": [True, False],
        "dropout": [0.0, 0.5],
        "normalize": ["softmax", "top_k(2)"],
    }


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("atention=dot,none", "did you mean 'attention'"),
        ("pooling=summ,mean", "did you mean 'sum'"),
        ("width=1,two", "a whole number"),
        ("width=0,2", "expected 1 or more"),
        ("pooling", "expected option=value,value"),
        ("pooling=sum", "two values or more"),
        ("pooling=sum,sum", "occurs twice"),
        ("seed=1,2", "--seeds says"),
        ("epochs=1,2", "--budget is the same for all"),
        ("data=a.tsv,b.tsv", "the same data"),
        (f"width={','.join(map(str, range(1, 2000)))}", "1,999 combinations: at most 1,000"),
    ],
)
def test_mistakes_are_refused_in_one_line(vary, message):
    with pytest.raises(RegardError, match=message) as caught:
        grid("classify", [vary])
    assert "\n" not in str(caught.value)


def test_too_many_trainings_are_refused():
    made = grid("classify", ["pooling=sum,mean"])
    with pytest.raises(RegardError, match=r"20,000 trainings: at most 1,000"):
        make_cells(made.systems, 10_000)


def test_an_option_that_varies_cannot_be_fixed_too():
    with pytest.raises(RegardError, match="is varied"):
        grid("classify", ["width=8,16"], {"width": 8})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("90s", {"minutes": 1.5}),
        ("2h", {"minutes": 120.0}),
        ("epochs=3", {"epochs": 3}),
        ("steps=1_000", {"steps": 1000}),
        ("tokens=10000", {"steps": 20, "min_batches": 1}),  # batches of 512 tokens
        (None, {}),
    ],
)
def test_budgets(text, options):
    assert parse_budget(text).options(TASKS["algorithm"], {}) == options


def test_budgets_in_words():
    words = {"epochs=1": "1 epoch", "steps=2000": "2,000 steps", "90s": "1.5 minutes"}
    words |= {"1m": "1 minute", "tokens=1": "1 token", "4s": "4 seconds", "0.05m": "3 seconds"}
    assert {text: str(parse_budget(text)) for text in words} == words


@pytest.mark.parametrize("text", ["5", "5 parsecs", "epochs=0", "steps=-3", "0m", ""])
def test_wrong_budgets(text):
    with pytest.raises(RegardError, match="expected a time such as 90s"):
        parse_budget(text)
