// A command of the `tensorfx` program: what its words mean, how they are read, and the help that says so.
import { ArgumentError } from '../errors/index.ts'
import { nearest } from '../protocol/index.ts'

/** What a command prints at its end, and its exit code. */
export interface Result {
  readonly text: string
  readonly code: number
}

/** Where lines go while a command runs. */
export interface Output {
  /** What it is asked for. */
  readonly print: (line: string) => void
  /** Its progress. */
  readonly note: (line: string) => void
}

/** The words of a command. */
export interface Line {
  /** Those that are no options, in order. */
  readonly operands: readonly string[]
  /** The options that were given, with their values; those that take none have an empty one. */
  readonly options: ReadonlyMap<string, string>
}

/** A word and what it means; the meaning may have several lines. */
interface Described {
  readonly name: string
  readonly text: string
}

/** An option. */
export interface CommandOption extends Described {
  /** What its value is called; null if it takes none. */
  readonly value: string | null
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
  /** Whether words with dashes that are no options of it are operands: they are for someone else. 'afterOperand': all words after the first operand are. */
  readonly passesOn?: boolean | 'afterOperand'
  readonly run: (line: Line, output: Output) => Promise<Result>
}

/**
 * The words after a command's name. A value may also follow an equals sign: `--out=FILE`. Throws ArgumentError for an unknown option, for one without its value, and for a value of one
 * that takes none.
 */
export function parseLine(words: readonly string[], { options: known, passesOn = false }: Pick<Command, 'options' | 'passesOn'>): Line {
  const options = new Map<string, string>()
  const operands: string[] = []
  const rest = [...words]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [given = word, attached] = /^(--[^=]+)=(.*)$/s.exec(word)?.slice(1) ?? []
    const option = known.find(({ name }) => name === given)
    if (option !== undefined) {
      if (option.value === null && attached !== undefined) throw new ArgumentError(`${given} takes no value, got '${attached}'.`)
      const value = option.value === null ? '' : (attached ?? rest.shift())
      if (value === undefined) throw new ArgumentError(`${given} needs a value.`)
      options.set(given, value)
    } else if (word.startsWith(passesOn === 'afterOperand' ? '-' : '--') && passesOn !== true) {
      const near = nearest(given, [...known.map(({ name }) => name), '--help'])
      throw new ArgumentError(`unknown option '${given}'.${near === null ? '' : ` Did you mean '${near}'?`}`)
    } else {
      operands.push(word)
      if (passesOn === 'afterOperand') operands.push(...rest.splice(0))
    }
  }
  return { operands, options }
}

/** Two columns of text, from the third character on. The second may have several lines. */
function columns(rows: readonly (readonly [left: string, right: string])[]): string[] {
  const width = Math.max(0, ...rows.map(([left]) => left.length))
  return rows.flatMap(([left, right]) => right.split('\n').map((line, i) => `  ${(i === 0 ? left : '').padEnd(width)}  ${line}`))
}

const START = 'usage: '

/** The help of a command, or of all commands of a group. */
export function helpOf(commands: readonly Command[]): string {
  const forms = commands.flatMap(({ name, forms: own }) => own.map(({ words }) => `tensorfx ${name} ${words}`.trimEnd()))
  const texts = commands.length === 1 ? [] : commands.flatMap(({ name, forms: own }) => own.map(({ text }) => [name, text] as const))
  const words = commands.flatMap(({ operands, options }) => [
    ...operands.map(({ name, text }) => [name, text] as const),
    ...options.map(({ name, value, text }) => [value === null ? name : `${name} ${value}`, text] as const),
  ])
  const endings = commands.map(({ ending }) => ending).filter((text) => text !== '')
  return [...forms.map((form, i) => `${i === 0 ? START : ' '.repeat(START.length)}${form}`), ...columns([...texts, ...words]), ...endings].join('\n')
}

/** The help that lists all commands. */
export function helpOfAll(version: string, commands: readonly Command[]): string {
  const rows = commands.flatMap(({ name, forms }) => forms.map(({ words, text }) => [`tensorfx ${name} ${words}`.trimEnd(), text] as const))
  const all = [...rows, ['tensorfx COMMAND --help', 'the options of a command'] as const, ['tensorfx --version', ''] as const]
  return [`tensorfx ${version}`, 'usage:', ...columns(all).map((line) => line.trimEnd())].join('\n')
}
