import configparser
c = configparser.ConfigParser(); c.read_string("[db]\nhost = localhost\nport = 5432\n[DEFAULT]\ndebug = yes")
print(c["db"]["host"], c.getint("db", "port"), c.getboolean("db", "debug"), c.sections())
