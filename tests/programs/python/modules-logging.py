import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
logging.info("shown %s", 1); logging.debug("hidden"); logging.getLogger("app").warning("careful")
try: 1 / 0
except ZeroDivisionError: logging.error("failed")
