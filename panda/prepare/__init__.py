"""Installing what experiments need on hosts, by playbooks: the only room that knows Ansible.

Plain deployments never come here.
"""
