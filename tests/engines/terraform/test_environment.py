"""What of our environment the runtime gets to see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform.environment import for_job, for_laptop, mirror_config, secret_values

OURS = {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
KEPT = {
    "HOME": "/home/maria",
    "PATH": "/bin",
    "AWS_PROFILE": "acme",
    "TF_VAR_size": "3",
    "TF_TOKEN_app_terraform_io": "t0ken",
    "TF_HTTP_PASSWORD": "secret",
    "TF_ENCRYPTION": "{}",
    "TF_CLI_CONFIG_FILE": "/home/maria/mine.tfrc",
    "TF_PLUGIN_CACHE_DIR": "/cache",
    "TF_WORKSPACE": "prod",
    "TF_DATA_DIR": "/data",
    "KUBE_NAMESPACE": "apps",
    "KUBE_CONFIG_PATH": "/home/maria/.kube/config",
}
DROPPED = {
    "TF_CLI_ARGS": "-no-color",
    "TF_CLI_ARGS_plan": "-destroy",
    "TF_LOG": "trace",
    "TF_LOG_CORE": "trace",
    "TF_LOG_PATH": "/tmp/log",
    "TF_LOG_PROVIDER": "trace",
    "TF_REATTACH_PROVIDERS": "{}",
    "TF_STATE_PERSIST_INTERVAL": "1",
}


def test_on_a_laptop_all_stays_but_what_would_change_or_spoil_a_step() -> None:
    env, dropped = for_laptop(KEPT | DROPPED | {"TF_INPUT": "1"})
    assert env == KEPT | OURS
    assert dropped == tuple(sorted(DROPPED))


def test_a_configuration_file_that_is_named_but_not_there_is_replaced_by_an_empty_one() -> None:
    named = {"TF_CLI_CONFIG_FILE": "/no"}
    assert for_laptop(named, is_file=lambda _: False, empty_config="/e")[0]["TF_CLI_CONFIG_FILE"] == "/e"
    assert for_laptop(named, is_file=lambda name: name == "/no", empty_config="/e")[0] == named | OURS
    old = {"TERRAFORM_CONFIG": "/no"}
    assert for_laptop(old, is_file=lambda _: False, empty_config="/e")[0] == old | OURS | {"TF_CLI_CONFIG_FILE": "/e"}


def test_where_none_is_named_the_users_own_one_is_left_to_be_found() -> None:
    assert for_laptop({}, is_file=lambda _: False, empty_config="/e")[0] == OURS


def test_in_a_job_nothing_of_the_runtimes_own_is_taken_from_outside() -> None:
    outside = KEPT | DROPPED | {"TF_INPUT": "1", "TMPDIR": "/scratch", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    env, dropped = for_job(outside, workdir="/job/", config_file="/job/cli.tfrc", extra={"TF_HTTP_ADDRESS": "u"})
    assert env == OURS | {
        "HOME": "/job/",
        "PATH": "/bin",
        "AWS_PROFILE": "acme",
        "KUBE_NAMESPACE": "apps",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "TMPDIR": "/scratch",
        "TF_DATA_DIR": "/job/.terraform",
        "TF_CLI_CONFIG_FILE": "/job/cli.tfrc",
        "TF_HTTP_ADDRESS": "u",
    }
    assert dropped == tuple(
        sorted(
            name for name in outside if name.startswith(("TF_", "KUBE_")) and name not in ("TF_INPUT", "KUBE_NAMESPACE")
        )
    )


ENVIRONMENTS = st.dictionaries(
    st.one_of(
        st.sampled_from(sorted(KEPT | DROPPED)),
        st.from_regex(r"(TF|KUBE)_[A-Z_a-z0-9]{0,12}", fullmatch=True),
        st.from_regex(r"[A-Z_]{1,8}", fullmatch=True),
    ),
    st.text(max_size=8),
)


@given(ENVIRONMENTS)
def test_a_name_is_kept_or_told_and_never_both(environ: dict[str, str]) -> None:
    for env, dropped in (for_laptop(environ), for_job(environ, workdir="/job")):
        kept = {name for name in environ if name in env}
        assert not kept & (set(dropped) - {"TF_DATA_DIR"})
        assert kept | set(dropped) >= set(environ)
        assert env.items() >= OURS.items()


def test_a_mirror_is_the_only_source_of_providers() -> None:
    assert mirror_config('/pro"viders') == (
        'provider_installation {\n  filesystem_mirror {\n    path = "/pro\\"viders"\n  }\n}\n'
    )


def test_secret_values_come_longest_first_and_short_ones_not_at_all() -> None:
    environ = {
        "TF_VAR_key": "abcdef",
        "TF_VAR_size": "3",
        "TF_TOKEN_x": "abcdefgh",
        "AWS_SECRET_ACCESS_KEY": "abcde",
        "PATH": "/usr/bin",
    }
    assert secret_values(environ) == ("abcdefgh", "abcdef", "abcde")
