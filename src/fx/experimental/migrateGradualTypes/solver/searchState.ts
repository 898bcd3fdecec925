// What the search knows about variables: the types of tensors that are equal, the bounds of integers, and comparisons that are not decided yet. Everything can be undone.
import { compute } from './model.ts'
import type { DimTerm, Formula, IntTerm, TensorTermZ3 } from '../z3Types.ts'

type Name = number | string

/** The smallest and largest value. */
export type Interval = readonly [low: number, high: number]

/** A comparison of integers. */
export interface Comparison {
  readonly op: '==' | '!=' | '<=' | '<'
  readonly lhs: IntTerm
  readonly rhs: IntTerm
}

/** What is known about a formula. */
export type Known = 'true' | 'false' | 'open'

const and = (...parts: readonly Known[]): Known => (parts.includes('false') ? 'false' : parts.includes('open') ? 'open' : 'true')
const or = (...parts: readonly Known[]): Known => (parts.includes('true') ? 'true' : parts.includes('open') ? 'open' : 'false')
const not = (part: Known): Known => (part === 'open' ? 'open' : part === 'true' ? 'false' : 'true')
const ALL: Interval = [-Infinity, Infinity]

/** 0 times infinity is 0 for bounds. */
const times = (a: number, b: number): number => (a === 0 || b === 0 ? 0 : a * b)

export class SearchState {
  readonly #undo: (() => void)[] = []
  /** Integers and tensors that are equal to another one of their kind. */
  readonly #equal = new Map<string, Name>()
  readonly #bounds = new Map<Name, Interval>()
  readonly #types = new Map<Name, TensorTermZ3>()
  readonly #bools = new Map<Name, boolean>()
  /** Comparisons that are not decided. */
  comparisons: readonly Comparison[] = []
  /** Whether something was learnt since it was last set to false. */
  changed = false

  /** A point to which {@link undoTo} returns. */
  get mark(): number {
    return this.#undo.length
  }

  undoTo(mark: number): void {
    while (this.#undo.length > mark) this.#undo.pop()?.()
  }

  /** Notes a change that can be undone. */
  remember(undo: () => void): void {
    this.#undo.push(undo)
    this.changed = true
  }

  #set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key)
    const had = map.has(key)
    map.set(key, value)
    this.remember(() => {
      if (had && before !== undefined) map.set(key, before)
      else map.delete(key)
    })
  }

  #root(kind: string, name: Name): Name {
    let at = name
    for (let next = this.#equal.get(`${kind}${at}`); next !== undefined; next = this.#equal.get(`${kind}${at}`)) at = next
    return at
  }

  /** The bounds of an integer. */
  interval(term: IntTerm): Interval {
    if (term.op === 'number') return [term.value, term.value]
    if (term.op === 'int') return this.#bounds.get(this.#root('i', term.name)) ?? ALL
    const [a, b] = [this.interval(term.lhs), this.interval(term.rhs)]
    if (a[0] === a[1] && b[0] === b[1] && Number.isFinite(a[0]) && Number.isFinite(b[0])) {
      const value = compute(term.op, a[0], b[0])
      return value === null ? ALL : [value, value]
    }
    switch (term.op) {
      case '+':
        return [a[0] + b[0], a[1] + b[1]]
      case '-':
        return [a[0] - b[1], a[1] - b[0]]
      case '*': {
        const ends = [times(a[0], b[0]), times(a[0], b[1]), times(a[1], b[0]), times(a[1], b[1])]
        return [Math.min(...ends), Math.max(...ends)]
      }
      case '/':
        return b[0] === b[1] && b[0] > 0 ? [Math.floor(a[0] / b[0]), Math.floor(a[1] / b[0])] : ALL
      default:
        return b[0] > 0 ? [0, b[1] - 1] : ALL
    }
  }

  /** Whether the value of a term depends on a division by zero, which may be anything. */
  #isAnything(term: IntTerm): boolean {
    if (term.op === 'number' || term.op === 'int') return false
    if (term.op === '/' || term.op === '%') {
      const [low, high] = this.interval(term.rhs)
      if (low === 0 && high === 0) return true
    }
    return this.#isAnything(term.lhs) || this.#isAnything(term.rhs)
  }

  /** The variables in a term whose value is not known. */
  unknowns(term: IntTerm, into: Set<Name> = new Set()): Set<Name> {
    if (term.op === 'int') {
      const root = this.#root('i', term.name)
      const [low, high] = this.#bounds.get(root) ?? ALL
      if (low !== high) into.add(root)
    } else if (term.op !== 'number') {
      this.unknowns(term.lhs, into)
      this.unknowns(term.rhs, into)
    }
    return into
  }

  compare({ op, lhs, rhs }: Comparison): Known {
    if (lhs.op === 'int' && rhs.op === 'int' && this.#root('i', lhs.name) === this.#root('i', rhs.name))
      return op === '==' || op === '<=' ? 'true' : 'false'
    const [a, b] = [this.interval(lhs), this.interval(rhs)]
    if (this.#isAnything(lhs) || this.#isAnything(rhs)) return 'true'
    if (op === '==' || op === '!=') {
      const apart = a[1] < b[0] || b[1] < a[0]
      const equal: Known = apart ? 'false' : a[0] === a[1] && b[0] === b[1] && a[0] === b[0] ? 'true' : 'open'
      return op === '==' ? equal : not(equal)
    }
    const strict = op === '<'
    if (strict ? a[1] < b[0] : a[1] <= b[0]) return 'true'
    return (strict ? a[0] >= b[1] : a[0] > b[1]) ? 'false' : 'open'
  }

  #dims(a: DimTerm, b: DimTerm): Known {
    return and(this.compare({ op: '==', lhs: a.flag, rhs: b.flag }), this.compare({ op: '==', lhs: a.value, rhs: b.value }))
  }

  /** The type of a tensor, or the variable that stands for all that are equal to it. */
  tensor(term: TensorTermZ3): TensorTermZ3 {
    if (term.op !== 'tensor') return term
    const name = this.#root('t', term.name)
    return this.#types.get(name) ?? { op: 'tensor', name }
  }

  #tensors(one: TensorTermZ3, other: TensorTermZ3): Known {
    const [a, b] = [this.tensor(one), this.tensor(other)]
    if (a.op === 'tensor' || b.op === 'tensor') return a.op === 'tensor' && b.op === 'tensor' && a.name === b.name ? 'true' : 'open'
    if (a.op === 'dyn' || b.op === 'dyn') return a.op === b.op ? 'true' : 'false'
    return a.dims.length === b.dims.length ? and(...a.dims.map((dim, i) => this.#dims(dim, b.dims[i] ?? dim))) : 'false'
  }

  /** What is known about a formula. */
  known(f: Formula): Known {
    switch (f.op) {
      case 'true':
      case 'false':
        return f.op
      case 'bool': {
        const value = this.#bools.get(f.name)
        return value === undefined ? 'open' : value ? 'true' : 'false'
      }
      case 'and': {
        let result: Known = 'true'
        for (const arg of f.args) {
          const part = this.known(arg)
          if (part === 'false') return 'false'
          if (part === 'open') result = 'open'
        }
        return result
      }
      case 'or':
        return or(...f.args.map((arg) => this.known(arg)))
      case 'not':
        return not(this.known(f.arg))
      case '==': {
        if (f.sort === 'int') return this.compare(f)
        if (f.sort === 'dim') return this.#dims(f.lhs, f.rhs)
        if (f.sort === 'tensor') return this.#tensors(f.lhs, f.rhs)
        const [a, b] = [this.known(f.lhs), this.known(f.rhs)]
        return a === 'open' || b === 'open' ? 'open' : a === b ? 'true' : 'false'
      }
      default:
        return this.compare(f)
    }
  }

  /** Decides a condition. Returns false if it has the other value. */
  assertBool(name: Name, value: boolean): boolean {
    const known = this.#bools.get(name)
    if (known === undefined) this.#set(this.#bools, name, value)
    return known === undefined || known === value
  }

  /** Makes two types equal. Returns false if they cannot be. */
  assertTensors(one: TensorTermZ3, other: TensorTermZ3): boolean {
    const [a, b] = [this.tensor(one), this.tensor(other)]
    if (a.op === 'tensor') {
      if (b.op !== 'tensor') this.#set(this.#types, a.name, b)
      else if (a.name !== b.name) this.#set(this.#equal, `t${a.name}`, b.name)
      return true
    }
    if (b.op === 'tensor') return this.assertTensors(b, a)
    if (a.op === 'dyn' || b.op === 'dyn') return a.op === b.op
    return a.dims.length === b.dims.length && a.dims.every((dim, i) => this.assertDims(dim, b.dims[i] ?? dim))
  }

  /** Makes two sizes equal. Returns false if they cannot be. */
  assertDims(a: DimTerm, b: DimTerm): boolean {
    return this.assertInts({ op: '==', lhs: a.flag, rhs: b.flag }) && this.assertInts({ op: '==', lhs: a.value, rhs: b.value })
  }

  /** Makes a comparison true. Returns false if it cannot be. */
  assertInts(comparison: Comparison): boolean {
    const known = this.compare(comparison)
    if (known !== 'open') return known === 'true'
    const { op, lhs, rhs } = comparison
    if (op === '==' && lhs.op === 'int' && rhs.op === 'int') return this.#unite(this.#root('i', lhs.name), this.#root('i', rhs.name))
    const before = this.comparisons
    this.comparisons = [...before, comparison]
    this.remember(() => (this.comparisons = before))
    return this.narrowBy(comparison)
  }

  #unite(a: Name, b: Name): boolean {
    const [x, y] = [this.#bounds.get(a) ?? ALL, this.#bounds.get(b) ?? ALL]
    this.#set(this.#equal, `i${a}`, b)
    return this.#narrowVariable(b, Math.max(x[0], y[0]), Math.min(x[1], y[1]))
  }

  #narrowVariable(root: Name, low: number, high: number): boolean {
    const [from, to] = this.#bounds.get(root) ?? ALL
    const [least, most] = [Math.max(low, from), Math.min(high, to)]
    if (least > most) return false
    if (least > from || most < to) this.#set(this.#bounds, root, [least, most])
    return true
  }

  /** Narrows the variables of a comparison. Returns false if it cannot hold. */
  narrowBy({ op, lhs, rhs }: Comparison): boolean {
    if (this.#isAnything(lhs) || this.#isAnything(rhs)) return true
    const [a, b] = [this.interval(lhs), this.interval(rhs)]
    if (op === '==') return this.#narrow(lhs, b[0], b[1]) && this.#narrow(rhs, a[0], a[1])
    if (op === '!=') return this.#exclude(lhs, b) && this.#exclude(rhs, a)
    const gap = op === '<' ? 1 : 0
    return this.#narrow(lhs, -Infinity, b[1] - gap) && this.#narrow(rhs, a[0] + gap, Infinity)
  }

  /** A variable that must not have a value at the end of its range. */
  #exclude(term: IntTerm, [low, high]: Interval): boolean {
    if (term.op !== 'int' || low !== high) return true
    const [from, to] = this.interval(term)
    return this.#narrowVariable(this.#root('i', term.name), from === low ? from + 1 : from, to === low ? to - 1 : to)
  }

  #narrow(term: IntTerm, low: number, high: number): boolean {
    if (low > high || Number.isNaN(low) || Number.isNaN(high)) return false
    if (term.op === 'number') return term.value >= low && term.value <= high
    if (term.op === 'int') return this.#narrowVariable(this.#root('i', term.name), Math.ceil(low), Math.floor(high))
    const [a, b] = [this.interval(term.lhs), this.interval(term.rhs)]
    switch (term.op) {
      case '+':
        return this.#narrow(term.lhs, low - b[1], high - b[0]) && this.#narrow(term.rhs, low - a[1], high - a[0])
      case '-':
        return this.#narrow(term.lhs, low + b[0], high + b[1]) && this.#narrow(term.rhs, a[0] - high, a[1] - low)
      case '*':
        return this.#narrowFactor(term.lhs, b, low, high) && this.#narrowFactor(term.rhs, a, low, high)
      case '/':
        return b[0] !== b[1] || b[0] <= 0 || this.#narrow(term.lhs, low * b[0], high * b[0] + b[0] - 1)
      default:
        return true
    }
  }

  #narrowFactor(term: IntTerm, other: Interval, low: number, high: number): boolean {
    if (other[0] < 1 || this.interval(term)[0] < 0) return true
    return this.#narrow(term, low <= 0 ? -Infinity : Math.ceil(low / other[1]), high === Infinity ? Infinity : Math.floor(high / other[0]))
  }

  /** The value to give to an integer of which nothing else is known. */
  valueOf(name: Name): number {
    const [low, high] = this.#bounds.get(this.#root('i', name)) ?? ALL
    return Number.isFinite(low) ? low : Number.isFinite(high) ? high : 0
  }
}
