// A command of the `tensorfx` program: what its words mean, how they are read, and the help that says so.
import { parseArgs } from 'node:util'
import { ArgumentError } from '../errors/index.ts'
import { nearest } from '../protocol/index.ts'
import type { OnProgress } from '../protocol/index.ts'
import { PLAIN, wrapped } from './terminal.ts'
import type { Terminal } from './terminal.ts'

/** What a command prints at its end, and its exit code. */
export interface Result {
  readonly text: string
  /** 0: done, and nothing is wrong; 1: what was looked for is wrong; 2: the command cannot be understood, or its files cannot be read. */
  readonly code: number
  /** What `--json` prints in place of the text; undefined for a command that runs another program. */
  readonly data?: unknown
}

/** Where lines go while a command runs. */
export interface Output {
  /** What it is asked for. */
  readonly print: (line: string) => void
  /** Lines about its progress. */
  readonly note: (line: string) => void
  /** How far it is. Default: nowhere. */
  readonly progress?: OnProgress
  /** Default: a file. */
  readonly terminal?: Terminal
}

/** The words of a command. */
export interface Line {
  /** Those that are not options, in order. */
  readonly operands: readonly string[]
  /** The options that were given, with their values; those that take none have an empty one. */
  readonly options: ReadonlyMap<string, string>
}

/** A word and what it means; the meaning may have several lines. */
interface Described {
  readonly name: string
  readonly text: string
}

/** What the value of an option can be; any text without it. */
export type ValueType =
  | { readonly kind: 'whole number'; readonly least: number }
  | { readonly kind: 'number'; readonly least: number }
  | { readonly kind: 'positive number' }
  | { readonly kind: 'choice'; readonly of: readonly string[] }

/** An option. */
export interface CommandOption extends Described {
  /** What its value is called; null if it takes none. */
  readonly value: string | null
  readonly type?: ValueType
}

/** A command, as the table of commands has it. */
export interface Command {
  /** One word, or two for a command of a group. */
  readonly name: string
  /** What may follow the name, and what it does, in a line each. */
  readonly forms: readonly { readonly words: string; readonly text: string }[]
  readonly operands: readonly Described[]
  readonly options: readonly CommandOption[]
  /** What its exit codes mean. */
  readonly ending: string
  /** Whether words with dashes that are not options of it are operands: they are for someone else. 'afterOperand': all words after the first operand are. */
  readonly passesOn?: boolean | 'afterOperand'
  /** Whether it has `--json`; default: unless its words go to another program. */
  readonly hasJson?: boolean
  readonly run: (line: Line, output: Output) => Promise<Result>
}

/** What asks for JSON. */
export const JSON_WORD = '--json'

/** The option that commands have which print a result of their own. */
const JSON_OPTION: CommandOption = { name: JSON_WORD, value: null, text: 'prints the result as JSON, errors too' }

/** The options of a command. */
export const optionsOf = ({ options, passesOn = false, hasJson = passesOn === false }: Words): readonly CommandOption[] =>
  hasJson ? [...options, JSON_OPTION] : options

/** What says which words a command has. */
export type Words = Pick<Command, 'options' | 'passesOn' | 'hasJson'>

/** Throws ArgumentError for a value that an option cannot have. */
function checkValue(name: string, text: string, type: ValueType): void {
  const value = text.trim() === '' ? NaN : Number(text)
  switch (type.kind) {
    case 'choice':
      if (!type.of.includes(text)) throw new ArgumentError(`${name} is ${type.of.join(' or ')}, got '${text}'.`)
      return
    case 'positive number':
      if (!(value > 0)) throw new ArgumentError(`${name} needs a positive number, got '${text}'.`)
      return
    case 'number':
    case 'whole number': {
      const fits = Number.isFinite(value) && value >= type.least && (type.kind === 'number' || Number.isSafeInteger(value))
      if (!fits) throw new ArgumentError(`${name} needs a ${type.kind} of at least ${type.least}, got '${text}'.`)
    }
  }
}

/** The number that an option has, which its type has checked; undefined if it was not given. */
export function numberOf({ options }: Line, name: string): number | undefined {
  const text = options.get(name)
  return text === undefined ? undefined : Number(text)
}

/**
 * The words after a command's name. A value may also follow an equals sign: `--out=FILE`. Throws ArgumentError for an unknown option, for one without its value, for a value that it
 * cannot have, and for a value of one that takes none.
 */
export function parseLine(words: readonly string[], command: Words): Line {
  const { passesOn = false } = command
  const known = optionsOf(command)
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      known.map(({ name, value }) => {
        const bare = name.replace(/^--?/, '')
        return [bare, { type: value === null ? 'boolean' : 'string', ...(bare.length === 1 ? { short: bare } : {}) } as const]
      }),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const options = new Map<string, string>()
  const operands: string[] = []
  let last = -1
  for (const token of tokens) {
    const word = words[token.index] ?? ''
    if (token.kind === 'option-terminator') {
      if (passesOn !== false) operands.push(word)
      continue
    }
    if (token.kind === 'positional') {
      if (passesOn === 'afterOperand') return { operands: words.slice(token.index), options }
      operands.push(token.value)
      continue
    }
    const given = token.rawName
    // Short options stand alone: `-np` is not `-n p`.
    const option = given.startsWith('--') || word === given ? known.find(({ name }) => name === given) : undefined
    if (option === undefined) {
      if (passesOn !== true) throw unknownOption(given.startsWith('--') ? given : word, known)
      // `-abc` is a token for each letter.
      if (token.index !== last) operands.push(word)
      last = token.index
    } else if (option.value === null) {
      if (token.value !== undefined) throw new ArgumentError(`${given} takes no value, got '${token.value}'.`)
      options.set(given, '')
    } else {
      if (token.value === undefined) throw new ArgumentError(`${given} needs a value.`)
      if (option.type !== undefined) checkValue(given, token.value, option.type)
      options.set(given, token.value)
    }
  }
  return { operands, options }
}

function unknownOption(word: string, known: readonly CommandOption[]): ArgumentError {
  const near = nearest(word, [...known.map(({ name }) => name), '--help'])
  return new ArgumentError(`unknown option '${word}'.${near === null ? '' : ` Did you mean '${near}'?`}`)
}

/** No terminal makes the meaning of a word narrower than this. */
const NARROWEST = 24

/** Two columns of text, from the third character on. The second may have several lines, and has more where the terminal is narrow. */
function twoColumns(rows: readonly (readonly [left: string, right: string])[], { columns }: Terminal): string[] {
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  const room = columns === null ? Infinity : Math.max(NARROWEST, columns - width - 4)
  return rows.flatMap(([left, right]) =>
    right
      .split('\n')
      .flatMap((line) => wrapped(line, room))
      .map((line, i) => `  ${(i === 0 ? left : '').padEnd(width)}  ${line}`),
  )
}

const START = 'usage: '

/** The help of a command, or of all commands of a group. */
export function helpOf(commands: readonly Command[], terminal: Terminal = PLAIN): string {
  const forms = commands.flatMap(({ name, forms: own }) => own.map(({ words }) => `tensorfx ${name} ${words}`.trimEnd()))
  const texts = commands.length === 1 ? [] : commands.flatMap(({ name, forms: own }) => own.map(({ text }) => [name, text] as const))
  const words = commands.flatMap((command) => [
    ...command.operands.map(({ name, text }) => [name, text] as const),
    ...optionsOf(command).map(({ name, value, text }) => [value === null ? name : `${name} ${value}`, text] as const),
  ])
  const endings = commands.map(({ ending }) => ending).filter((text) => text !== '')
  return [
    ...forms.map((form, i) => `${i === 0 ? START : ' '.repeat(START.length)}${form}`),
    ...twoColumns([...texts, ...words], terminal),
    ...endings,
  ].join('\n')
}

/** The help that lists all commands. */
export function helpOfAll(version: string, commands: readonly Command[], terminal: Terminal = PLAIN): string {
  const rows = commands.flatMap(({ name, forms }) => forms.map(({ words, text }) => [`tensorfx ${name} ${words}`.trimEnd(), text] as const))
  const all = [
    ...rows,
    ['tensorfx COMMAND --help', 'the options of a command; also: tensorfx help COMMAND'] as const,
    ['tensorfx --version', ''] as const,
  ]
  return [`tensorfx ${version}`, 'usage:', ...twoColumns(all, terminal).map((line) => line.trimEnd())].join('\n')
}
