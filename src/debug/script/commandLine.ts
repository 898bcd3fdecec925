// The command line of repro scripts and minifier launchers: PyTorch's subcommands and options, as a table. Scripts also run in pages, so nothing of Node is used.
import { ArgumentError } from '../../errors/index.ts'
import { nearest } from '../../protocol/index.ts'
import { isDeathKind } from '../judge/death.ts'
import type { FailureSpec } from '../judge/judge.ts'

/** What a script can do, with what its help says of it. */
const COMMANDS = {
  run: 'run the repro with its backend and with eager: exit code 1 if it fails, 0 if it passes, 2 if eager fails too',
  minify: 'run the minifier on the repro',
  analyze: 'compare every intermediate value with eager and float64',
  'minifier-query': 'judge the graph as the minifier judges a candidate: exit code 1 if it still fails, 0 if it passes',
  get_args: 'load the graph and its inputs, and say what they are',
} as const

/** A subcommand of repro scripts. */
export type Command = keyof typeof COMMANDS

const isCommand = (word: string): word is Command => Object.hasOwn(COMMANDS, word)

const commandNames = (): readonly Command[] => Object.keys(COMMANDS).filter(isCommand)

/** On which tensors a graph runs first. PyTorch's tracing_mode. */
export type TracingMode = 'real' | 'fake' | 'symbolic'

export interface CommandLine {
  command: Command
  backend: string | null
  accuracy: FailureSpec['accuracy']
  checkStr: string | null
  signature: string | null
  death: string | null
  onlyFwd: boolean
  /** Wrong numbers are judged call by call. */
  contract: boolean
  saveDir: string | null
  /** Storages that are in files become random numbers. */
  random: boolean
  tracingMode: TracingMode
  /** Other values of sizes, by symbol. */
  sizes: Map<string, number>
  isolate: boolean
  maxGranularity: number | null
  timeoutMs: number
  runs: number
  skipSanity: boolean
  /** The folder that the command line names: `analyze` saves values there. */
  valuesDir: string | null
  /** Of `minify`: the values of the graph's nodes are kept in files in the folder `saveDir`. */
  offloadToDisk: boolean
  /** Values that earlier runs saved are taken instead of computed. */
  savedEager: boolean
  savedCompiled: boolean
  savedFloat64: boolean
  /** Of `analyze`: the backend runs once, and is not compared with itself. */
  skipCheckDeterministic: boolean
}

/** One option. */
interface Option {
  readonly flag: string
  /** What the value is called in the help; absent for a flag without one. */
  readonly value?: string
  /** The commands that take it; absent: all of them. */
  readonly commands?: readonly Command[]
  /** Options of one group exclude each other. */
  readonly group?: string
  readonly help: string
  set(line: CommandLine, value: string): void
}

const CANDIDATES: readonly Command[] = ['minify', 'minifier-query']
const JUDGING: readonly Command[] = ['run', ...CANDIDATES]

const OPTIONS: readonly Option[] = [
  {
    flag: '--no-accuracy',
    group: 'accuracy',
    help: 'errors count; numbers are not looked at',
    set: (line) => void (line.accuracy = 'none'),
  },
  {
    flag: '--accuracy',
    group: 'accuracy',
    help: 'wrong numbers count: floating-point results that are further from the float64 reference than those of eager, beyond the tolerance. The compiled graph may differ from eager where it is closer to the reference. Differences in integers and booleans alone do not count, since they are often the effect of a rounding before them.',
    set: (line) => void (line.accuracy = 'accuracy'),
  },
  {
    flag: '--strict-accuracy',
    group: 'accuracy',
    help: 'any difference counts, also one in integers and booleans. The minifier makes progress in more cases, and may end at a comparison whose inputs are only rounded differently.',
    set: (line) => void (line.accuracy = 'strict_accuracy'),
  },
  {
    flag: '--save-dir',
    value: 'DIR',
    help: 'folder that holds the storages which are not in the script; analyze saves the values that it compares there',
    set: (line, dir) => setFolder(line, dir),
  },
  { flag: '--no-save-dir', help: 'use random numbers for the storages which are not in the script; says so', set: (line) => setFolder(line, null) },
  {
    flag: '--tracing-mode',
    value: '{real,fake,symbolic}',
    help: 'real (default): the graph is used as it is. fake: it runs on fake tensors first, which gives its nodes shapes. symbolic: with symbols for the sizes that the script says may differ from call to call, or for all if it names none',
    set: (line, mode) => void (line.tracingMode = tracingMode(mode)),
  },
  {
    flag: '--size',
    value: 'SYMBOL=N',
    help: 'another value of a size, with the inputs repeated or cut; implies --tracing-mode symbolic, which says what the sizes are. May be given several times',
    set: (line, text) => setSize(line, text),
  },
  {
    flag: '--backend',
    value: 'BACKEND',
    help: 'another backend: a registered name, or ./file.mjs#export',
    set: (line, name) => void (line.backend = name),
  },
  { flag: '--only-fwd', commands: JUDGING, help: 'do not run the backward', set: (line) => void (line.onlyFwd = true) },
  {
    flag: '--check-str',
    value: 'CHECK_STR',
    commands: JUDGING,
    help: 'only errors whose text contains this string count',
    set: (line, text) => void (line.checkStr = text),
  },
  {
    flag: '--death',
    value: 'KIND',
    commands: JUDGING,
    group: 'death',
    help: "the failure ends the process: crash, hang, 'exit N' or any",
    set: (line, kind) => void (line.death = deathKind(kind)),
  },
  { flag: '--no-death', commands: JUDGING, group: 'death', help: 'the failure does not end the process', set: (line) => void (line.death = null) },
  {
    flag: '--isolate',
    commands: ['run', 'minify'],
    group: 'isolate',
    help: 'run what may end the process in a child process (default)',
    set: (line) => void (line.isolate = true),
  },
  {
    flag: '--no-isolate',
    commands: ['run', 'minify'],
    group: 'isolate',
    help: 'run everything in this process, which is faster',
    set: (line) => void (line.isolate = false),
  },
  {
    flag: '--timeout-ms',
    value: 'N',
    commands: ['run', 'minify'],
    help: 'milliseconds before a candidate counts as hanging',
    set: (line, text) => void (line.timeoutMs = count('--timeout-ms', text)),
  },
  {
    flag: '--runs',
    value: 'N',
    commands: ['run'],
    help: 'run until it fails, at most N times',
    set: (line, text) => void (line.runs = count('--runs', text)),
  },
  {
    flag: '--skip-sanity',
    commands: ['minify'],
    help: 'do not check first that the original graph fails',
    set: (line) => void (line.skipSanity = true),
  },
  {
    flag: '--max-granularity',
    value: 'MAX_GRANULARITY',
    commands: ['minify'],
    help: 'start at this granularity and work down; a power of two',
    set: (line, text) => void (line.maxGranularity = powerOfTwo('--max-granularity', text)),
  },
  {
    flag: '--offload-to-disk',
    commands: ['minify'],
    help: 'keep the values of the graph in files of the folder --save-dir instead of memory: for graphs whose values do not fit there together. Values that share memory with others are then not replaced, so that the result may be larger',
    set: (line) => void (line.offloadToDisk = true),
  },
  {
    flag: '--skip-saving-eager-intermediates',
    commands: ['minify'],
    help: 'with --offload-to-disk: take the values that an earlier run saved',
    set: (line) => void (line.savedEager = true),
  },
  {
    flag: '--skip-saving-inductor-intermediates',
    commands: ['analyze'],
    help: 'take the values of the backend that an earlier run saved in the folder --save-dir',
    set: (line) => void (line.savedCompiled = true),
  },
  {
    flag: '--skip-saving-float64-intermediates',
    commands: ['analyze'],
    help: 'take the values in float64 that an earlier run saved in the folder --save-dir',
    set: (line) => void (line.savedFloat64 = true),
  },
  {
    flag: '--skip-check-deterministic',
    commands: ['analyze'],
    help: 'do not check that the backend computes the same twice',
    set: (line) => void (line.skipCheckDeterministic = true),
  },
  { flag: '--stable-hash', commands: ['analyze'], help: 'name data by SHA-1, which tensorfx always does', set: () => {} },
]

function setFolder(line: CommandLine, dir: string | null): void {
  line.saveDir = line.valuesDir = dir
  line.random = dir === null
}

const optionsOf = (command: Command): readonly Option[] => OPTIONS.filter(({ commands }) => commands === undefined || commands.includes(command))

/** What the arguments ask for beside the options in `line`: null to go on, or the help to print. Throws ArgumentError for arguments that mean nothing. */
export function parseCommandLine(words: readonly string[], line: CommandLine): string | null {
  const usual = { ...line }
  const rest = [...words]
  const given: { readonly option: Option; readonly value: string }[] = []
  let command: Command | null = null
  let wantsHelp = false
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--help' || word === '-h') {
      wantsHelp = true
      continue
    }
    if (!word.startsWith('-')) {
      if (!isCommand(word)) throw unknownWord(word)
      if (command !== null) throw new ArgumentError(`the command '${word}' follows '${command}': give one.\n${usageOf(null)}`)
      command = word
      continue
    }
    const equals = word.indexOf('=')
    const flag = word.startsWith('--') && equals > 0 ? word.slice(0, equals) : word
    const option = OPTIONS.find((known) => known.flag === flag)
    if (option === undefined) throw unknownWord(flag)
    if (option.value === undefined && flag !== word) throw new ArgumentError(`${flag} takes no value.\n${usageOf(command)}`)
    const value = option.value === undefined ? '' : flag === word ? rest.shift() : word.slice(equals + 1)
    if (value === undefined) throw new ArgumentError(`${flag} needs a value.\n${usageOf(command)}`)
    given.push({ option, value })
  }
  line.command = command ?? line.command
  if (wantsHelp) return command === null ? helpOfAll(usual) : helpOf(command)
  checkTogether(given, line.command)
  for (const { option, value } of given) option.set(line, value)
  return null
}

/** Throws ArgumentError for options that exclude each other, and for those of other commands. */
function checkTogether(given: readonly { readonly option: Option }[], command: Command): void {
  const groups = new Map<string, string>()
  for (const { option } of given) {
    const { flag, group } = option
    if (!optionsOf(command).includes(option)) {
      const owners = (option.commands ?? []).join(' and ')
      throw new ArgumentError(`${flag} is no option of ${command}, but of ${owners}.\n${usageOf(command)}`)
    }
    if (group === undefined) continue
    const other = groups.get(group)
    if (other !== undefined && other !== flag) throw new ArgumentError(`${flag} is not allowed with ${other}.\n${usageOf(command)}`)
    groups.set(group, flag)
  }
}

function tracingMode(text: string): TracingMode {
  if (text === 'real' || text === 'fake' || text === 'symbolic') return text
  throw new ArgumentError(`--tracing-mode is real, fake or symbolic, got '${text}'.`)
}

function setSize(line: CommandLine, text: string): void {
  const [, symbol, size] = /^(s\d+)=(\d+)$/.exec(text) ?? []
  if (symbol === undefined) throw new ArgumentError(`--size is a symbol and a number, such as s0=7, got '${text}'.`)
  line.tracingMode = 'symbolic'
  line.sizes.set(symbol, Number(size))
}

function count(flag: string, text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < 1)
    throw new ArgumentError(`${flag} needs a whole number that is at least 1, got '${text}'.`)
  return number
}

function powerOfTwo(flag: string, text: string): number {
  const number = count(flag, text)
  if (!Number.isInteger(Math.log2(number))) throw new ArgumentError(`${flag} needs a power of two, got '${text}'.`)
  return number
}

function deathKind(text: string): string {
  if (isDeathKind(text)) return text
  throw new ArgumentError(`--death is crash, hang, any or 'exit N', got '${text}'.`)
}

function unknownWord(word: string): ArgumentError {
  if (word.endsWith('.mjs'))
    return new ArgumentError(
      `unknown argument '${word}': a script takes no other script. If a pattern such as run_* stands for several scripts, name one of them.`,
    )
  const near = nearest(word, [...commandNames(), ...OPTIONS.map(({ flag }) => flag)])
  return new ArgumentError(`unknown argument '${word}'.${near === null ? '' : ` Did you mean '${near}'?`}\n${usageOf(null)}`)
}

const WIDTH = 100

/** Words in lines of at most WIDTH characters; every line but the first is indented. */
function wrapped(words: readonly string[], first: string, indent: number): string {
  const lines = [first]
  for (const word of words) {
    const last = lines.at(-1) ?? ''
    const isEmpty = last.trim() === '' && lines.length > 1
    if (isEmpty || last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = isEmpty || last.endsWith(' ') ? last + word : `${last} ${word}`
    else lines.push(' '.repeat(indent) + word)
  }
  return lines.join('\n')
}

/** The usage of a command, or of all. */
function usageOf(command: Command | null): string {
  if (command === null) return `usage: repro.mjs [-h] {${commandNames().join(',')}} [options]`
  const head = `usage: repro.mjs ${command} [-h]`
  const groups = new Map<string, string[]>()
  for (const { flag, value, group } of optionsOf(command)) {
    const text = value === undefined ? flag : `${flag} ${value}`
    const key = group ?? flag
    groups.set(key, [...(groups.get(key) ?? []), text])
  }
  return wrapped(
    [...groups.values()].map((texts) => `[${texts.join(' | ')}]`),
    head,
    `usage: repro.mjs ${command} `.length,
  )
}

/** A term and its explanation beside it, or below if the term is long. */
function explained(term: string, text: string, column: number): string {
  const head = `  ${term}`
  const words = text.split(' ')
  const [first = '', ...others] = words
  return head.length + 2 <= column
    ? wrapped(others, `${head.padEnd(column)}${first}`, column)
    : `${head}\n${wrapped(others, ' '.repeat(column) + first, column)}`
}

const HELP = explained('-h, --help', 'show this help message and exit', 24)

function helpOf(command: Command): string {
  const options = optionsOf(command).map(({ flag, value, help }) => explained(value === undefined ? flag : `${flag} ${value}`, help, 24))
  return [usageOf(command), '', wrapped(COMMANDS[command].split(' '), '', 0).trim(), '', 'options:', HELP, ...options].join('\n')
}

function helpOfAll(usual: CommandLine): string {
  const settings = (['accuracy', 'tracingMode', 'saveDir', 'checkStr', 'backend'] as const).map((key) => `  ${key}=${JSON.stringify(usual[key])}`)
  return [
    usageOf(null),
    '',
    `A repro script. Without arguments it defaults to '${usual.command}'; '${usual.command} --help' lists the`,
    'options of that command, and so for the others.',
    '',
    'default settings on this script:',
    ...settings,
    '',
    'commands:',
    ...commandNames().map((name) => explained(name, COMMANDS[name], 24)),
    '',
    'options:',
    HELP,
  ].join('\n')
}
