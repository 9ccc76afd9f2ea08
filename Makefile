PYTHON ?= python3
VENV := .venv
RELEASE := flashinfer-python==0.7.4

.PHONY: agree demo test lint bench schema rules clean

# Lints a real FlashInfer release. cutlint finds what will not run and exits with 1, which is what is shown here.
demo: $(VENV)/installed
	@$(VENV)/bin/cutlint check $(RELEASE); code=$$?; echo "cutlint exited with $$code"; test $$code -eq 1

test: $(VENV)/installed-dev
	$(VENV)/bin/python -m pytest

lint: $(VENV)/installed-dev
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

bench: $(VENV)/installed-dev
	$(VENV)/bin/python bench/release.py $(RELEASE)

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV)

# The model against the compiler's front end on N random instantiations; SEED=... draws the same again.
N ?= 300
agree: $(VENV)/installed-dev
	$(VENV)/bin/python bench/agree.py $(RELEASE) $(N) $(SEED)

# The published schema of the JSON report, made from the records.
schema: $(VENV)/installed
	$(VENV)/bin/python -c "import json, cutlint.report as r; print(json.dumps(r.schema(), indent=2))" > reports/cutlint.schema.json
	$(VENV)/bin/python -c "import json, cutlint.tactics as r; print(json.dumps(r.schema(), indent=2))" > reports/cutlint-tactics.schema.json
	$(VENV)/bin/python -c "import json, cutlint.diff as r; print(json.dumps(r.schema(), indent=2))" > reports/cutlint-diff.schema.json
	$(VENV)/bin/python -c "import json, cutlint.fitting as r; print(json.dumps(r.schema(), indent=2))" > reports/cutlint-fit.schema.json

# docs/rules.md, made from rules/.
rules: $(VENV)/installed
	$(VENV)/bin/python docs/rules.py > docs/rules.md
