"""Pulls of registered folders, and those that fail."""

from __future__ import annotations

import pytest

from stackhold.testing.kube_node.images import Image, Images, PullFailed, image_id


def test_a_pull_brings_what_is_registered() -> None:
    images, image = Images(), Image(working_dir="/here")
    images.register("an/image:1", image)
    assert images.take("an/image:1", "IfNotPresent") is image


def test_an_image_that_nobody_registered_is_not_found() -> None:
    with pytest.raises(PullFailed, match="not found") as caught:
        Images().take("an/image:1", "Always")
    assert caught.value.reason == "ErrImagePull"


def test_a_pull_fails_while_it_is_told_to_but_what_is_there_stays() -> None:
    images, image = Images(), Image()
    images.register("an/image:1", image)
    images.fail_pulls("an/image:1", "no route to the registry")
    with pytest.raises(PullFailed, match="no route to the registry"):
        images.take("an/image:1", "IfNotPresent")
    images.heal_pulls("an/image:1")
    assert images.take("an/image:1", "IfNotPresent") is image
    images.fail_pulls("an/image:1", "no route to the registry")
    assert images.take("an/image:1", "IfNotPresent") is image
    with pytest.raises(PullFailed):
        images.take("an/image:1", "Always")


def test_an_image_that_must_not_be_pulled_must_be_there() -> None:
    images = Images()
    images.register("an/image:1", Image())
    with pytest.raises(PullFailed) as caught:
        images.take("an/image:1", "Never")
    assert caught.value.reason == "ErrImageNeverPull"
    images.take("an/image:1", "Always")
    images.take("an/image:1", "Never")


def test_an_image_id_is_the_repository_with_a_digest() -> None:
    assert image_id("registry:5000/an/image:1").startswith("registry:5000/an/image@sha256:")
    assert image_id("an/image@sha256:0") == "an/image@sha256:0"
    assert image_id("image:1") != image_id("image:2")
