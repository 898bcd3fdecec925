// Reads the text of a graph as PyTorch prints it. Strings stand there without quotes, so the strings that occur must be known.
import type { GoldenNode, GoldenValue } from './golden.ts'
import type { Opcode } from 'tensorfx/fx'

const LINE = /^%(\S+) : (?:(\S+) )?\[num_users=\d+\] = (\w+)\[target=([^\]]+)\](.*)$/

/** The nodes of `str(graph)`; `strings` are the string constants that may occur in it. */
export function parseGraph(text: string, strings: readonly string[] = []): GoldenNode[] {
  const nodes: GoldenNode[] = []
  for (const raw of text.split('\n').slice(1)) {
    const line = raw.trim()
    if (line.startsWith('return ')) nodes.push(node('output', 'output', 'output', null, [new Values(line.slice(7), [], true).value()], {}))
    else nodes.push(parseLine(line, strings))
  }
  return withUsers(nodes)
}

const node = (
  op: Opcode,
  name: string,
  target: string,
  type: string | null,
  args: readonly GoldenValue[],
  kwargs: Readonly<Record<string, GoldenValue>>,
): GoldenNode => ({ op, name, target, type, args, kwargs, users: [] })

function parseLine(line: string, strings: readonly string[]): GoldenNode {
  const match = LINE.exec(line)
  if (match === null) throw new Error(`not a line of a graph: ${line}`)
  const [, name = '', type, op = '', target = '', rest = ''] = match
  if (rest.startsWith('(default=')) return node(op as Opcode, name, target, type ?? null, [new Values(rest.slice(9, -1), strings, true).value()], {})
  if (rest === '') return node(op as Opcode, name, target, type ?? null, [], {})
  const values = new Values(rest, strings, false)
  values.expect('(args = ')
  const args = (values.value() as { readonly tuple: readonly GoldenValue[] }).tuple
  values.expect(', kwargs = ')
  const kwargs = (values.value() as { readonly dict: Readonly<Record<string, GoldenValue>> }).dict
  values.expect(')')
  return node(op as Opcode, name, target, type ?? null, args, kwargs)
}

/** Users in the order in which they come. */
function withUsers(nodes: readonly GoldenNode[]): GoldenNode[] {
  const users = new Map<string, Set<string>>(nodes.map((n) => [n.name, new Set()]))
  for (const n of nodes) for (const input of [...n.args, ...Object.values(n.kwargs)].flatMap(inputsOf)) users.get(input)?.add(n.name)
  return nodes.map((n) => ({ ...n, users: [...(users.get(n.name) ?? [])] }))
}

function inputsOf(value: GoldenValue): string[] {
  if (isArray(value)) return value.flatMap(inputsOf)
  if (typeof value !== 'object' || value === null) return []
  if ('node' in value) return [value.node]
  if ('tuple' in value) return value.tuple.flatMap(inputsOf)
  if ('slice' in value) return value.slice.flatMap(inputsOf)
  return 'dict' in value ? Object.values(value.dict).flatMap(inputsOf) : []
}

const isArray = (value: GoldenValue): value is readonly GoldenValue[] => Array.isArray(value)

/** A cursor over the text of values. */
class Values {
  readonly #text: string
  readonly #strings: readonly string[]
  #at = 0
  /** Nodes have no percent sign here. */
  #bare: boolean

  constructor(text: string, strings: readonly string[], bare: boolean) {
    this.#text = text
    this.#strings = strings.toSorted((a, b) => b.length - a.length)
    this.#bare = bare
  }

  expect(text: string): void {
    if (!this.#text.startsWith(text, this.#at)) throw new Error(`expected '${text}' at ${this.#at} of: ${this.#text}`)
    this.#at += text.length
  }

  #accept(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  value(): GoldenValue {
    if (this.#accept('slice(')) return { slice: this.#bareItems(')') }
    if (this.#accept('(')) return { tuple: this.#items(')') }
    if (this.#accept('[')) return this.#items(']')
    if (this.#accept('{')) return this.#dict()
    if (this.#accept('%')) return { node: this.#word() }
    if (this.#accept("'")) return this.#quoted()
    const known = this.#strings.find((s) => this.#text.startsWith(s, this.#at) && /^([,)\]}]|$)/.test(this.#text.slice(this.#at + s.length)))
    if (known !== undefined && known !== '') {
      this.#at += known.length
      return known
    }
    return this.#scalar(this.#word())
  }

  #items(end: string): readonly GoldenValue[] {
    const items: GoldenValue[] = []
    while (!this.#accept(end)) {
      items.push(this.value())
      if (!this.#accept(', ')) this.#accept(',')
    }
    return items
  }

  #bareItems(end: string): readonly GoldenValue[] {
    const before = this.#bare
    this.#bare = true
    const items = this.#items(end)
    this.#bare = before
    return items
  }

  #dict(): GoldenValue {
    const entries: [string, GoldenValue][] = []
    while (!this.#accept('}')) {
      const key = this.#accept("'") ? this.#quoted() : this.#until(/:/)
      this.expect(': ')
      entries.push([key, this.value()])
      this.#accept(', ')
    }
    return { dict: Object.fromEntries(entries) }
  }

  #quoted(): string {
    const text = this.#until(/'/)
    this.expect("'")
    return text
  }

  #word(): string {
    return this.#until(/[,)\]}]/)
  }

  #until(stop: RegExp): string {
    const from = this.#at
    while (this.#at < this.#text.length && !stop.test(this.#text[this.#at] as string)) this.#at++
    return this.#text.slice(from, this.#at)
  }

  #scalar(word: string): GoldenValue {
    if (word === 'None') return null
    if (word === 'True' || word === 'False') return word === 'True'
    if (/^-?\d+$/.test(word)) return Number(word)
    if (/^-?(inf|nan)$/.test(word)) return { float: word }
    if (/^-?\d+(\.\d*)?(e[+-]?\d+)?$/.test(word)) return { float: Number(word) }
    if (word === 'Ellipsis' || word.startsWith('torch.')) return { repr: word }
    return this.#bare ? { node: word } : word
  }
}
