"""Published conclusions judged again: holds, does not hold here, or cannot tell, because…"""
