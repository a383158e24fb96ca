"""The section Model of the Data page: what it starts, and the comparison that it shows."""
# ruff: noqa: F811  (a fixture that is imported)

import pytest
from ui_overview import kept_job
from ui_pages import Pages, pages, shown  # noqa: F401  (a fixture)

from sonde.app.ui.jobs import Jobs


def test_the_model_is_changed_compared_and_changed_back(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pages.collection("reviews")
    asked: list[list[str]] = []
    monkeypatch.setattr(Jobs, "start", lambda _, title, name, words: asked.append([title, name, *words[2:]]))
    page = pages.open("data", collection="reviews", do="Model")
    assert f"Model in use: **{made.model}**" in shown(page)
    page.button(key="model-start").click().run()
    page.selectbox(key="model-to").set_value("another").run()
    page.button(key="model-start").click().run()
    assert asked == [] and "Choose or type another model." in shown(page)
    page.selectbox(key="model-to").set_value("static (fast, for drafts)").run()
    page.checkbox(key="model-dry").check().run()
    page.button(key="model-start").click().run()
    page.checkbox(key="model-dry").uncheck().run()
    page.button(key="model-start").click().run()
    device = ["--device", "cpu", "--json"]
    title = "Change the model of reviews"
    assert asked == [
        [title, "reviews", "--to", "static", "--dry-run", *device], [title, "reviews", "--to", "static", *device],
    ]  # fmt: skip
    assert "model-undo" not in {button.key for button in page.button}, "there is no previous model"
    side = {"passages": 3, "dimension": 8, "bytes": 96, "per_second": 10.0}
    gain = {"mode": "hybrid", "measure": "ndcg@10", "before": 0.9, "after": 0.8, "difference": -0.1, "low": -0.2,
            "high": 0.0, "p": 0.01}  # fmt: skip
    found = {"source": "30 queries", "gains": [gain], "refusal": "searches are significantly worse with static",
             "before": side | {"model": made.model}, "after": side | {"model": "static"}}  # fmt: skip
    did = {"before": made.model, "after": "static", "switched": False, "comparison": found, "notes": ["few queries"]}
    kept_job(pages, ["model"], collection="reviews", title=title, code=1, stdout=[did])
    page = pages.open("data", collection="reviews", do="Model")
    assert f"The collection keeps {made.model}: searches are significantly worse with static." in shown(page)
    [card] = [each.value.replace("\\", "") for each in page.warning]
    assert card.endswith("significantly worse with static. Model shows the comparison.")
    assert "its process ended without a message" not in shown(page)
    assert page.dataframe[len(page.dataframe) - 1].value.to_dict("records")[0] == {
        "Measure": "hybrid ndcg@10", made.model: "0.900", "static": "0.800", "Difference": "-0.100",
        "95 % interval": "-0.200 to +0.000", "p": "0.010",
    }  # fmt: skip
    assert "Note: few queries." in shown(page)
    page.button(key="model-anyway").click().run()
    assert asked[-1] == [title, "reviews", "--to", "static", "--anyway", *device]
