"""The account: no username, no names, no sequence."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class Accounts(BaseUserManager["Account"]):
    def create_user(self, email: str, password: str, **more: Any) -> Account:
        account = self.model(email=email, **more)
        account.set_password(password)
        account.save()
        return account

    def create_superuser(self, email: str, password: str) -> Account:
        return self.create_user(email, password, is_staff=True, is_superuser=True)


class Account(AbstractBaseUser, PermissionsMixin):
    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)

    everybody: ClassVar[Accounts] = Accounts()
    objects = everybody

    EMAIL_FIELD = USERNAME_FIELD = "email"

    class Meta:
        app_label = "anyuser"

    def __str__(self) -> str:
        return self.email
