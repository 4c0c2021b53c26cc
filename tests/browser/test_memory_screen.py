"""The memory screen: write and read heads over time, with examples to click."""


def test_heads_over_time_are_those_of_the_trace(app, ask_trace):
    window = app().open("memory")
    page = window.page
    assert window.state()["model"] == "copy"
    assert page.locator(".rg-examples .rg-chip").count() >= 3
    page.locator(".rg-examples .rg-chip").first.click()
    window.ready()
    text = window.state()["text"]
    trace = ask_trace("copy", text)
    assert page.get_by_role("heading", level=2, name=trace["output"]).is_visible()
    labels = page.locator(".rg-timeline text").all_text_contents()
    assert {"Write head 1", "Write head 2", "Input", "Output"} <= set(labels)
    page.locator(".rg-timeline").focus()
    window.press("Home")
    symbol = text.split()[0]
    assert window.status().startswith(f"‘{symbol}’ comes in and is written to slot")
    window.press("ArrowRight")
    assert window.state()["row"] == "1"
    window.press("End")
    assert "it reads slot" in window.status()
    window.press("t")
    window.ready()
    reads = [look["weights"] for look in trace["looks"] if look["name"] == "memory.write"]
    rows = page.locator(".rg-table tbody tr")
    assert rows.count() == len(trace["sides"]["steps"]["tokens"])
    for step, weights in enumerate(reads[0]):
        slot = 1 + weights.index(max(weights))
        assert rows.nth(step).locator("td").nth(1).inner_text().startswith(f"slot {slot},")


def test_steps_play_and_pause(app):
    window = app().open("memory", model="copy", text="3 1", row="0")
    page = window.page
    page.get_by_role("button", name="Play").click()
    page.wait_for_selector(".rg-memory-side h3:text-is('Step 3 of 5')")
    page.get_by_role("button", name="Pause").click()
    assert page.get_by_role("button", name="Play").is_visible()
