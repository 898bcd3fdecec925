// Reads the PyTorch calls of the goldens, `lambda x: F.pad(x[:, 0], (1, 2), mode='reflect')`, as calls of tensorfx: the small part of Python that they use.
// Names become camelCase, keyword arguments an options object, and operators the functions that they stand for.
import { torch } from 'tensorfx'
import { Tensor } from 'tensorfx'
import { elsewhere } from './func.ts'
import type { getitem } from '../../src/ops/index.ts'
import { camelCase } from '../../src/protocol/index.ts'

type Scope = ReadonlyMap<string, unknown>
type Code = (scope: Scope) => unknown

/** Keyword arguments, as the last argument of a call. */
type Options = Record<string, unknown>

const TOKEN =
  /\s*(?:(\d+\.\d*(?:e[-+]?\d+)?|\.\d+|\d+e[-+]?\d+)|(\d+)|([A-Za-z_]\w*)|('[^']*'|"[^"]*")|(\.\.\.|\*\*|\/\/|<<|>>|[<>=!]=|[-+*/%@<>()[\]{}.,:=]))/y

interface Token {
  readonly kind: 'float' | 'int' | 'name' | 'string' | 'sign' | 'end'
  readonly text: string
}

function tokenize(source: string): readonly Token[] {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < source.trimEnd().length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(source)
    if (match === null) throw new SyntaxError(`${source}: unexpected text at ${at}`)
    const kinds = ['float', 'int', 'name', 'string', 'sign'] as const
    const index = kinds.findIndex((_, k) => match[k + 1] !== undefined)
    tokens.push({ kind: kinds[index] ?? 'end', text: match[index + 1] ?? '' })
  }
  return tokens
}

export { camelCase }

/** A number written with a point, where it matters: the elements of torch.tensor. */
let sawFloat = false

const isTensor = (value: unknown): value is Tensor => value instanceof Tensor

/** The functions behind the binary operators. */
const OPERATORS: Readonly<Record<string, { readonly name: string; readonly numbers: (a: number, b: number) => number | boolean }>> = {
  '+': { name: 'add', numbers: (a, b) => a + b },
  '-': { name: 'sub', numbers: (a, b) => a - b },
  '*': { name: 'mul', numbers: (a, b) => a * b },
  '/': { name: 'div', numbers: (a, b) => a / b },
  '//': { name: 'floorDivide', numbers: (a, b) => Math.floor(a / b) },
  '%': { name: 'remainder', numbers: (a, b) => a - b * Math.floor(a / b) },
  '**': { name: 'pow', numbers: (a, b) => a ** b },
  '@': { name: 'matmul', numbers: () => NaN },
  '<<': { name: 'bitwiseLeftShift', numbers: (a, b) => a << b },
  '>>': { name: 'bitwiseRightShift', numbers: (a, b) => a >> b },
  '>': { name: 'gt', numbers: (a, b) => a > b },
  '<': { name: 'lt', numbers: (a, b) => a < b },
  '>=': { name: 'ge', numbers: (a, b) => a >= b },
  '<=': { name: 'le', numbers: (a, b) => a <= b },
  '==': { name: 'eq', numbers: (a, b) => a === b },
  '!=': { name: 'ne', numbers: (a, b) => a !== b },
}

/** Precedence, from the loosest. */
const LEVELS: readonly (readonly string[])[] = [
  ['>', '<', '>=', '<=', '==', '!='],
  ['<<', '>>'],
  ['+', '-'],
  ['*', '/', '//', '%', '@'],
]

function apply(operator: string, a: unknown, b: unknown): unknown {
  const known = OPERATORS[operator]
  if (known === undefined) throw new SyntaxError(`unknown operator ${operator}`)
  if (typeof a === 'number' && typeof b === 'number') return known.numbers(a, b)
  if (operator === '*' && Array.isArray(a)) return Array.from({ length: Number(b) }, () => a).flat()
  // A number on the left has no method of its own.
  if (typeof a === 'number' && isTensor(b)) {
    if (operator === '+' || operator === '*') return member(b, known.name)(a)
    if (operator === '-') return b.neg().add(a)
    if (operator === '/') return b.reciprocal().mul(a)
    return member(torch, known.name)(a, b)
  }
  return member(a, known.name)(b)
}

function member(owner: unknown, name: string): (...args: unknown[]) => unknown {
  const fn: unknown = Reflect.get(Object(owner), name, owner)
  if (typeof fn !== 'function') throw new MissingName(name)
  return (...args) => Reflect.apply(fn, owner, args)
}

/** tensorfx does not have what the case calls. */
export class MissingName extends Error {
  constructor(name: string) {
    super(`tensorfx has no ${name}`)
  }
}

/** What Python's names stand for. */
const GLOBALS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['torch', torch],
  ['F', torch.nn.functional],
  ['nn', torch.nn],
  ['True', true],
  ['False', false],
  ['None', null],
  ['inf', Infinity],
  ['nan', NaN],
])

/** Where names of PyTorch live here, if not under the same path. */
const ELSEWHERE: ReadonlyMap<string, unknown> = new Map<string, unknown>([...elsewhere, ['lrScheduler', torch.optim]])

/** Options of PyTorch that have no counterpart here. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['foreach', 'use_reentrant', 'enable_nested_tensor'])

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(source: string) {
    this.#tokens = tokenize(source)
  }

  get #token(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' }
  }

  #take(text: string): boolean {
    if (this.#token.text !== text || this.#token.kind === 'string') return false
    this.#at++
    return true
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw new SyntaxError(`expected ${text}, got ${this.#token.text}`)
  }

  whole(): Code {
    const code = this.expression()
    if (this.#token.kind !== 'end') throw new SyntaxError(`unexpected ${this.#token.text}`)
    return code
  }

  expression(): Code {
    if (this.#take('lambda')) return this.#lambda()
    const value = this.#binary(0)
    if (!this.#take('if')) return value
    const condition = this.#binary(0)
    this.#expect('else')
    const other = this.expression()
    return (scope) => (condition(scope) === true ? value(scope) : other(scope))
  }

  #lambda(): Code {
    const names: string[] = []
    while (!this.#take(':')) {
      names.push(this.#token.text)
      this.#at++
      this.#take(',')
    }
    const body = this.expression()
    return (scope) =>
      (...args: unknown[]) =>
        body(new Map([...scope, ...names.map((name, i): [string, unknown] => [name, args[i]])]))
  }

  #binary(level: number): Code {
    const operators = LEVELS[level]
    if (operators === undefined) return this.#unary()
    let left = this.#binary(level + 1)
    while (this.#token.kind === 'sign' && operators.includes(this.#token.text)) {
      const operator = this.#token.text
      this.#at++
      const [a, b] = [left, this.#binary(level + 1)]
      left = (scope) => apply(operator, a(scope), b(scope))
    }
    return left
  }

  #unary(): Code {
    if (this.#take('-')) {
      const value = this.#unary()
      return (scope) => {
        const v = value(scope)
        return typeof v === 'number' ? -v : member(v, 'neg')()
      }
    }
    const base = this.#postfix()
    if (!this.#take('**')) return base
    const exponent = this.#unary()
    return (scope) => apply('**', base(scope), exponent(scope))
  }

  #postfix(): Code {
    const path: string[] = this.#token.kind === 'name' ? [this.#token.text] : []
    let value = this.#atom()
    for (;;) {
      if (this.#take('.')) {
        const name = this.#token.text
        this.#at++
        path.push(name)
        const owner = value
        const dotted = (path[0] === 'torch' ? path.slice(1) : path).map(camelCase).join('.')
        value =
          this.#token.text === '(' && this.#token.kind === 'sign'
            ? this.#call((scope) => owner(scope), name, dotted)
            : (scope) => (name === 'lr_scheduler' ? torch.optim : (ELSEWHERE.get(dotted) ?? attribute(owner(scope), name)))
      } else if (this.#token.kind === 'sign' && this.#token.text === '(') value = this.#call(value, null, '')
      else if (this.#take('[')) {
        const [owner, index] = [value, this.#index()]
        value = (scope) => {
          const self = owner(scope)
          const at = index(scope)
          if (!isTensor(self)) return Reflect.get(Object(self), Number(at))
          return self.getitem(asIndex(at))
        }
      } else return value
    }
  }

  /** A call of a function, or of the method `name`. */
  #call(target: Code, name: string | null, dotted: string): Code {
    this.#expect('(')
    const args: Code[] = []
    const stars = new Set<number>()
    const keywords: [string, Code][] = []
    const start = this.#at
    while (!this.#take(')')) {
      if (this.#take('*')) {
        stars.add(args.length)
        args.push(this.expression())
      } else if (this.#tokens[this.#at + 1]?.text === '=') {
        const key = this.#token.text
        this.#at += 2
        keywords.push([key, this.expression()])
      } else args.push(this.expression())
      this.#take(',')
    }
    const floats = this.#tokens.slice(start, this.#at).some((token) => token.kind === 'float' || token.text === 'nan' || token.text === 'inf')
    return (scope) => {
      const owner = target(scope)
      const given = args.flatMap((arg, i) => (stars.has(i) ? [...(arg(scope) as Iterable<unknown>)] : [arg(scope)]))
      const options: Options = Object.fromEntries(
        keywords.filter(([key]) => !WITHOUT_EFFECT.has(key)).map(([key, value]) => [key === 'self' ? key : camelCase(key), value(scope)]),
      )
      sawFloat = floats
      return invoke(owner, name, dotted, given, keywords.length > 0 ? options : null)
    }
  }

  /** One index, or Python's tuple of them. */
  #index(): Code {
    const items: Code[] = []
    let tuple = false
    while (!this.#take(']')) {
      items.push(this.#indexItem())
      if (this.#take(',')) tuple = true
    }
    const [only] = items
    return tuple || only === undefined ? (scope) => new Tuple(items.map((item) => item(scope))) : only
  }

  #indexItem(): Code {
    const parts: (Code | null)[] = [null]
    let isSlice = false
    for (;;) {
      if (this.#token.text === ']' || this.#token.text === ',') break
      if (this.#take(':')) {
        isSlice = true
        parts.push(null)
      } else parts[parts.length - 1] = this.expression()
    }
    if (!isSlice) return parts[0] ?? (() => null)
    return (scope) => {
      const [start, stop, step] = parts.map((part) => part?.(scope) ?? null)
      return { start: start ?? null, stop: stop ?? null, step: step ?? null }
    }
  }

  #atom(): Code {
    const token = this.#token
    this.#at++
    if (token.kind === 'int' || token.kind === 'float') return () => Number(token.text)
    if (token.kind === 'string') return () => token.text.slice(1, -1)
    if (token.text === '...') return () => '...'
    if (token.text === '(') return this.#sequence(')')
    if (token.text === '[') return this.#sequence(']')
    if (token.text === '{') return this.#dict()
    if (token.kind !== 'name') throw new SyntaxError(`unexpected ${token.text}`)
    return (scope) => {
      if (scope.has(token.text)) return scope.get(token.text)
      if (token.text === 'float') return (text: unknown) => Number(String(text).replace('inf', 'Infinity'))
      if (!GLOBALS.has(token.text)) throw new SyntaxError(`unknown name ${token.text}`)
      return GLOBALS.get(token.text)
    }
  }

  #dict(): Code {
    const entries: [Code, Code][] = []
    while (!this.#take('}')) {
      const key = this.expression()
      this.#expect(':')
      entries.push([key, this.expression()])
      this.#take(',')
    }
    return (scope) => Object.fromEntries(entries.map(([key, value]) => [camelCase(String(key(scope))), value(scope)]))
  }

  #sequence(close: string): Code {
    const items: Code[] = []
    let commas = 0
    while (!this.#take(close)) {
      items.push(this.expression())
      if (this.#take(',')) commas++
    }
    const [only] = items
    if (close === ')' && commas === 0 && only !== undefined) return only
    return (scope) => items.map((item) => item(scope))
  }
}

/** Python's tuple of indices. */
class Tuple {
  readonly items: readonly unknown[]
  constructor(items: readonly unknown[]) {
    this.items = items
  }
}

type Index = Parameters<typeof getitem>[1]

/** A list of positions is an item, and not several: `x[[0, 2]]`. */
const asIndex = (index: unknown): Index => (index instanceof Tuple ? index.items : [index]) as Index

function attribute(owner: unknown, name: string): unknown {
  const key = typeof owner === 'object' || typeof owner === 'function' ? camelCase(name) : name
  const value: unknown = Reflect.get(Object(owner), key, owner)
  if (value === undefined) throw new MissingName(name)
  return value
}

const isClass = (name: string): boolean => /^[A-Z]/.test(name)

function invoke(owner: unknown, name: string | null, dotted: string, given: readonly unknown[], options: Options | null): unknown {
  const args = options === null ? given : [...given, options]
  if (name === null) return Reflect.apply(owner as () => unknown, undefined, args)
  if (dotted === 'tensor') return torch.tensor(given[0] as number, { dtype: literalType(given[0]), ...options })
  if (ELSEWHERE.has(dotted)) return Reflect.apply(ELSEWHERE.get(dotted) as () => unknown, undefined, args)
  const key = camelCase(name)
  const fn: unknown = Reflect.get(Object(owner), key, owner)
  if (typeof fn !== 'function') throw new MissingName(name)
  return isClass(name) ? Reflect.construct(fn, args) : Reflect.apply(fn, owner, args)
}

/** The dtype that Python gives to numbers: int64 for whole ones, unless one of them is written with a point. */
function literalType(data: unknown): 'bool' | 'int64' | 'float32' {
  const [first] = [data].flat(9)
  return typeof first === 'boolean' ? 'bool' : sawFloat ? 'float32' : 'int64'
}

/** The value of a Python expression. */
export const evaluate = (source: string): unknown => new Parser(source).whole()(new Map())
