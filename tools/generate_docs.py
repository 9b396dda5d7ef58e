#!/usr/bin/env python3
"""Generates the completions, the man page and the Python functions from the program's option tables.

    tools/generate_docs.py CLPIPE TEMPLATE.1.in DIRECTORY
    tools/generate_docs.py CLPIPE tools/python/clpipe/_commands.py

Runs CLPIPE --help --json and writes clpipe.bash, clpipe.zsh, clpipe.fish and clpipe.1 into
DIRECTORY. The template is the man page with @COMMANDS@ and @OPTIONS@ on separate lines. The second line writes the
Python functions and, beside them, options.json with the texts of their docstrings. Both are checked in: run it after
options have changed.
"""
import json
import os
import re
import subprocess
import sys
import textwrap

# Useful completions that the tables do not list.
EXAMPLES = {"feature": ["rgb:bins=256", "rgb:bins=8x8x8", "gray:bins=256", "hsv:bins=8x4x4"]}
SPEC_COMMANDS = ("run", "ingest", "bench", "tune")  # whose --feature takes a SPEC


def options_of(command, common):
    return [option for group in command["groups"] + common for option in group["options"]]


def words_of(option, command):
    """The words allowed as the option's value: those of "a|b|FILE.npy", or a list in its help."""
    if option["name"] in EXAMPLES and command in SPEC_COMMANDS:
        return EXAMPLES[option["name"]]
    listed = re.search(r"\(([a-z0-9-]+(?:, [a-z0-9-]+)+)\)", option["help"])
    value = option.get("value", "")
    words = value.split("|") if "|" in value else listed[1].split(", ") if listed else []
    return [word for word in words if not word.isupper() and "." not in word]


def takes_file(option):
    return re.search(r"FILE|LIST|IN\b|PREFIX|\.json|\.svg|\.h5", option.get("value", "")) is not None


def takes_directory(option):
    return option.get("value") == "DIR"


# --- bash -------------------------------------------------------------------------------------------

BASH = """# clpipe.bash: completion of clpipe's commands, options and values. Generated.

# Adds the lines that compgen prints: names have spaces.
_clpipe_add()
{
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(compgen "$@")
}

# Files (-f) or directories (-d); a list of files has a @ before its name, which would be quoted, too.
_clpipe_files()
{
    local i name
    if [[ $current != @* ]]; then
        compopt -o filenames 2> /dev/null
        _clpipe_add "$1" -- "$current"
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
        return
    fi
    _clpipe_add "$1" -- "${current#@}"
    for i in "${!COMPREPLY[@]}"; do
        printf -v name %q "${COMPREPLY[i]}"
        [[ -d ${COMPREPLY[i]} ]] && name+=/ && compopt -o nospace 2> /dev/null
        COMPREPLY[i]=@$name
    done
}

_clpipe()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} words= before=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _clpipe_add -W "@COMMANDS@ --version --help" -- "$current"
        return
    fi
    # bash splits --option=value at the equals sign.
    if [[ $current == "=" ]]; then
        current=
    elif [[ $previous == "=" ]]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $2 == @* && $COMP_WORDBREAKS == *@* ]]; then
        # And at a @, as if a host's name began there: what comes before it is left alone.
        before=${COMP_LINE:0:COMP_POINT-${#2}}
        before=${before##*[[:space:]]}
        current=$before$2
    fi
    case "$command $previous" in
@VALUES@
    esac
    case $command in
@OPTIONS@
    esac
    if [[ $current == -* ]]; then
        _clpipe_add -W "$words" -- "$current"
    else
        _clpipe_files -f
    fi
}

complete -F _clpipe clpipe
"""


def bash(tables):
    values, names = [], []
    for command in tables["commands"]:
        options = options_of(command, tables["common"])
        names.append('    %s) words="%s --help" ;;' %
                     (command["name"], " ".join("--" + option["name"] for option in options)))
        for option in options:
            if "value" not in option:
                continue
            given = ['"%s --%s"' % (command["name"], option["name"])]
            if "letter" in option:
                given.append('"%s -%s"' % (command["name"], option["letter"]))
            actions = []
            if words := words_of(option, command["name"]):
                actions.append('_clpipe_add -W "%s" -- "$current"' % " ".join(words))
            if takes_file(option) or takes_directory(option):
                actions.append("_clpipe_files -%s" % "fd"[takes_directory(option)])
            values.append("    %s) %s ;;" % (" | ".join(given), "; ".join([*actions, "return"])))
    return BASH.replace("@COMMANDS@", " ".join(c["name"] for c in tables["commands"])) \
        .replace("@VALUES@", "\n".join(values)).replace("@OPTIONS@", "\n".join(names))


# --- zsh --------------------------------------------------------------------------------------------

def zsh_quoted(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh(tables):
    lines = ["#compdef clpipe",
             "# clpipe.zsh: completion of clpipe's commands, options and values. Generated.", "",
             "_clpipe() {", "    local -a commands options", "    commands=("]
    lines += ["        '%s:%s'" % (c["name"], zsh_quoted(c["summary"])) for c in tables["commands"]]
    lines += ["    )", "    if ((CURRENT == 2)); then", "        _describe command commands",
              "        return", "    fi", "    case $words[2] in"]
    for command in tables["commands"]:
        lines.append("    %s) options=(" % command["name"])
        for option in options_of(command, tables["common"]):
            value = ""
            if "value" in option:
                words = words_of(option, command["name"])
                action = ("_files" if takes_file(option) else "_directories"
                          if takes_directory(option) else "(%s)" % " ".join(words) if words else "")
                value = ":%s:%s" % (zsh_quoted(option["value"]), action.replace(":", "\\:"))
            lines.append("        '%s--%s%s[%s]%s'" %
                         ("*" if option["repeatable"] else "", option["name"],
                          "=" if value else "", zsh_quoted(option["help"]), value))
        lines.append("        '--help[explain the command]') ;;")
    lines += ["    esac", "    shift words", "    ((CURRENT--))",
              "    _arguments -s $options '*:file:_files'", "}", "", '_clpipe "$@"', ""]
    return "\n".join(lines)


# --- fish -------------------------------------------------------------------------------------------

def fish_quoted(text):
    return "'%s'" % text.replace("\\", "\\\\").replace("'", "\\'")


def fish(tables):
    lines = ["# clpipe.fish: completion of clpipe's commands, options and values. Generated.", "",
             "function __clpipe_is", "    set -l words (commandline -opc)",
             '    test "$words[2]" = "$argv[1]"', "end", "",
             "set -l first 'test (count (commandline -opc)) -eq 1'",
             "complete -c clpipe -n $first -f",
             "complete -c clpipe -n $first -l version -d 'what this program was built with'",
             "complete -c clpipe -s h -l help -d 'explain the command'"]
    for command in tables["commands"]:
        lines.append("complete -c clpipe -n $first -a %s -d %s" %
                     (command["name"], fish_quoted(command["summary"])))
    for command in tables["commands"]:
        for option in options_of(command, tables["common"]):
            parts = ["complete -c clpipe -n '__clpipe_is %s'" % command["name"]]
            if "letter" in option:
                parts.append("-s " + option["letter"])
            parts.append("-l " + option["name"])
            if "value" in option:
                files = takes_file(option) or takes_directory(option)
                parts.append("-r" if files else "-x")
                if words := words_of(option, command["name"]):
                    parts.append("-a " + fish_quoted(" ".join(words)))
            parts.append("-d " + fish_quoted(option["help"]))
            lines.append(" ".join(parts))
    return "\n".join(lines) + "\n"


# --- man page ---------------------------------------------------------------------------------------

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def sentence(text):
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def man_option(option):
    names = ", ".join("\\fB%s\\fR" % roff(name) for name in
                      (["-" + option["letter"]] if "letter" in option else []) +
                      ["--" + option["name"]])
    value = ' \\fI%s\\fR' % roff(option["value"]) if "value" in option else ""
    text = roff(sentence(option["help"]))
    if "default" in option:
        text += " Default: %s." % roff(option["default"])
    return [".TP", names + value, text]


def man_options(tables):
    """Each table of options once, headed by the commands that take it."""
    tables_seen, lines = [], []
    for group in tables["common"]:
        tables_seen.append((["all commands"], group))
    for command in tables["commands"]:
        for group in command["groups"]:
            known = [names for names, other in tables_seen if other == group]
            if known:
                known[0].append(command["name"])
            else:
                tables_seen.append(([command["name"]], group))
    for names, group in tables_seen:
        lines.append(".SS %s (%s)" % (roff(group["title"]), roff(", ".join(names))))
        for option in group["options"]:
            lines += man_option(option)
    return lines


def man_commands(tables):
    lines = []
    for command in tables["commands"]:
        lines += [".TP", "\\fBclpipe %s\\fR %s" % (roff(command["name"]), roff(command["arguments"])),
                  roff(sentence(command["summary"]))]
        for paragraph in command.get("about", "").splitlines():
            lines += [".IP", roff(paragraph)]
    return lines


def man(tables, template):
    lines = []
    for line in template.splitlines():
        parts = {"@COMMANDS@": man_commands, "@OPTIONS@": man_options}
        lines += parts[line](tables) if line in parts else [line]
    return "\n".join(lines) + "\n"


# --- Python -----------------------------------------------------------------------------------------

PYTHON = '''"""The commands of the program. Generated by tools/generate_docs.py, like options.json, which has the rest
of the docstrings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Optional, Union

from clpipe._reader import PathLike
from clpipe._run import Common, Integer, Number, Report, Seconds, Text, Texts, call, document

if TYPE_CHECKING:
    from typing_extensions import Unpack

'''
HINTS = {"text": "Text", "texts": "Texts", "integer": "Integer", "integers": "Number", "integer?": "Integer",
         "size": "Number", "seconds": "Seconds", "real": "Optional[float]", "share": "Number"}
WRITTEN_BY_HAND = ("remove", "rename")


def python_hint(option):
    if option["type"] == "flag":
        return "bool = False"
    words = ", ".join(word if word.isdigit() else '"%s"' % word for word in option["value"].split("|"))
    return "%s = None" % (HINTS.get(option["type"]) or "Optional[Literal[%s]]" % words)


def python_name(name):
    return name.replace("-", "_") + ("_" if name in ("import", "class") else "")


def wrapped(text, indent, more, columns=108):
    lines = textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=more, break_long_words=False,
                          break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def python_options(command, tables):
    """Options of the command that are not common to all commands."""
    common = [option["name"] for group in tables["common"] for option in group["options"]]
    return [option for option in options_of(command, []) if option["name"] not in common]


def python_command(command, options):
    name = python_name(command["name"])
    operand = re.match(r"\[?([A-Z]\w*)(?:\.h5)?", command["arguments"])
    operand = "" if command["arguments"] == "[OPTIONS]" else \
        "file" if ".h5" in command["arguments"].split()[0] else operand[1].lower()
    kind = "Union[PathLike, int]" if "[N]" in command["arguments"] else "PathLike"
    parts = (["*%s: %s" % (operand, kind)] if operand else ["*"] if options else []) + \
        ["%s: %s" % (python_name(option["name"]), python_hint(option)) for option in options]
    signature = ", ".join(part.replace(" ", "\0") for part in parts + ["**common: Unpack[Common]"])
    arguments = re.sub(r" ?\[OPTIONS\]", "", command["arguments"]).rstrip(".")
    usage = " As clpipe %s." % " ".join(filter(None, [command["name"], arguments]))
    return wrapped("def %s(%s)\0->\0Report:" % (name, signature), "", " " * (len(name) + 5)) + \
        wrapped('"""%s%s"""' % (sentence(command["summary"]), usage), "    ", "    ") + \
        ['    return call("%s", %s, locals())' % (command["name"], operand or "()")]


def python(tables):
    """Returns the functions, and their texts: descriptions of commands, and a row per distinct option."""
    lines, texts, rows = [], [], {}
    commands = [command for command in tables["commands"] if command["name"] not in WRITTEN_BY_HAND]
    for command in commands:
        options = python_options(command, tables)
        lines += ["", ""] + python_command(command, options)
        name = python_name(command["name"])
        about = "\n\n".join("\n".join(wrapped(line, "", "", 100)) for line in command.get("about", "").splitlines())
        texts.append("  %s: %s" % (json.dumps(name), json.dumps(about)))
        for option in options:
            default = " [%s]" % option["default"] if option.get("default") else ""
            text = "%s: %s%s" % (python_name(option["name"]), option["help"], default)
            rows.setdefault((python_name(option["name"]), "\n".join(wrapped(text, "", "  ", 100))), []).append(name)
    names = ", ".join('"%s"' % python_name(command["name"]) for command in commands)
    options = ["  " + json.dumps([name, text, *users]) for (name, text), users in rows.items()]
    return (PYTHON + "\n".join(wrapped("__all__ = [%s]" % names, "", " " * 11) + lines) + "\n\n\ndocument(globals())\n",
            '{"commands": {\n%s\n}, "options": [\n%s\n]}\n' % (",\n".join(texts), ",\n".join(options)))


def main(arguments):
    if len(arguments) == 3:
        functions, texts = python(json.loads(subprocess.run([arguments[1], "--help", "--json"], check=True,
                                                            capture_output=True, text=True).stdout))
        for name, text in ((arguments[2], functions),
                           (os.path.join(os.path.dirname(arguments[2]), "options.json"), texts)):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        return 0
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, template, directory = arguments[1:]
    tables = json.loads(subprocess.run([program, "--help", "--json"], check=True,
                                       capture_output=True, text=True).stdout)
    with open(template, encoding="utf-8") as file:
        page = man(tables, file.read().replace("@VERSION@", tables["version"]))
    for name, text in (("clpipe.bash", bash(tables)), ("clpipe.zsh", zsh(tables)),
                       ("clpipe.fish", fish(tables)), ("clpipe.1", page)):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
