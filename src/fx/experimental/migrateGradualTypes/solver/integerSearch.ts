// Decides formulas without Z3: a search through the alternatives, with what follows from each. It knows ranks, flags and bounds of sizes; where bounds leave too many values, it
// tries some, and then says 'unknown' instead of 'unsat'.
import { Model, namesIn } from './model.ts'
import { SearchState } from './searchState.ts'
import type { Comparison } from './searchState.ts'
import { And, D, FALSE, Int, Or, TRUE, compare, sameInt, sameTensor, tensor, z3Dyn } from '../z3Types.ts'
import type { Formula, IntTerm, TensorTermZ3 } from '../z3Types.ts'

/** How many decisions a search may take. */
const BUDGET = 20_000
/** How often conclusions are drawn from each other: bounds may creep without end. */
const ROUNDS = 100
/** The longest range whose values are all tried. */
const RANGE = 4096
/** How many values are tried in a longer range. */
const SAMPLE = 64
const MAX_RANK = 4

interface Answer {
  readonly status: 'sat' | 'unsat' | 'unknown'
  readonly model: Model | null
}

/** A decision: alternatives, the ones that were tried, and where the state returns to. */
interface Decision {
  readonly alternatives: readonly Formula[]
  readonly mark: number
  next: number
}

class Search {
  readonly #state = new SearchState()
  /** Alternatives of which one must hold. */
  #open: readonly Formula[] = []
  #fresh = 0
  /** Whether values were left out. */
  #incomplete = false

  run(formula: Formula): Answer {
    const decisions: Decision[] = []
    let possible = this.#assert(formula)
    for (let steps = 0; steps < BUDGET; steps++) {
      if (possible && this.#propagate()) {
        const alternatives = this.#choose()
        if (alternatives === null) return { status: 'sat', model: this.#model(formula) }
        decisions.push({ alternatives, mark: this.#state.mark, next: 0 })
      }
      const decision = this.#backtrack(decisions)
      if (decision === null) return { status: this.#incomplete ? 'unknown' : 'unsat', model: null }
      possible = this.#assert(decision)
    }
    return { status: 'unknown', model: null }
  }

  /** The next alternative of the last decision that has one, after going back to it. */
  #backtrack(decisions: Decision[]): Formula | null {
    for (let last = decisions.at(-1); last !== undefined; last = decisions.at(-1)) {
      this.#state.undoTo(last.mark)
      const alternative = last.alternatives[last.next++]
      if (alternative !== undefined) return alternative
      decisions.pop()
    }
    return null
  }

  /** Makes a formula true as far as it is clear how. Returns false if it cannot be. */
  #assert(f: Formula): boolean {
    switch (f.op) {
      case 'true':
        return true
      case 'false':
        return false
      case 'bool':
        return this.#state.assertBool(f.name, true)
      case 'and':
        return f.args.every((arg) => this.#assert(arg))
      case 'or':
        return this.#addAlternatives(f)
      case 'not':
        return f.arg.op === 'bool' ? this.#state.assertBool(f.arg.name, false) : this.#assert(this.#negated(f.arg))
      case '==':
        switch (f.sort) {
          case 'int':
            return this.#state.assertInts(f)
          case 'dim':
            return this.#state.assertDims(f.lhs, f.rhs)
          case 'tensor':
            return this.#state.assertTensors(f.lhs, f.rhs)
          default:
            return this.#addAlternatives(Or(And(f.lhs, f.rhs), And({ op: 'not', arg: f.lhs }, { op: 'not', arg: f.rhs })))
        }
      default:
        return this.#state.assertInts(f)
    }
  }

  #addAlternatives(f: Formula): boolean {
    const before = this.#open
    this.#open = [...before, f]
    this.#state.remember(() => (this.#open = before))
    return true
  }

  #negated(f: Formula): Formula {
    switch (f.op) {
      case 'true':
        return FALSE
      case 'false':
        return TRUE
      case 'bool':
        return { op: 'not', arg: f }
      case 'and':
        return { op: 'or', args: f.args.map((arg): Formula => ({ op: 'not', arg })) }
      case 'or':
        return { op: 'and', args: f.args.map((arg): Formula => ({ op: 'not', arg })) }
      case 'not':
        return f.arg
      case '!=':
        return sameInt(f.lhs, f.rhs)
      case '<=':
        return compare(f.rhs, '<', f.lhs)
      case '<':
        return compare(f.rhs, '<=', f.lhs)
      default:
        switch (f.sort) {
          case 'int':
            return compare(f.lhs, '!=', f.rhs)
          case 'dim':
            return Or(compare(f.lhs.flag, '!=', f.rhs.flag), compare(f.lhs.value, '!=', f.rhs.value))
          case 'tensor':
            return this.#differentTypes(f.lhs, f.rhs)
          default:
            return { ...f, rhs: { op: 'not', arg: f.rhs } }
        }
    }
  }

  /** One type is Dyn and the other is not, or the ranks differ, or a size does. */
  #differentTypes(a: TensorTermZ3, b: TensorTermZ3): Formula {
    const shape = (rank: number): TensorTermZ3 =>
      rank === 0 ? z3Dyn : tensor(...Array.from({ length: rank }, () => D(this.#newInt(), this.#newInt())))
    const ranks = Array.from({ length: MAX_RANK + 1 }, (_, rank) => rank)
    return Or(
      ...ranks.flatMap((one) =>
        ranks.flatMap((other) => {
          const [x, y] = [shape(one), shape(other)]
          if (one !== other) return [And(sameTensor(a, x), sameTensor(b, y))]
          if (x.op !== 'sizes' || y.op !== 'sizes') return []
          const differ = x.dims.map((dim, i) => this.#negated({ op: '==', sort: 'dim', lhs: dim, rhs: y.dims[i] ?? dim }))
          return [And(sameTensor(a, x), sameTensor(b, y), Or(...differ))]
        }),
      ),
    )
  }

  #newInt(): IntTerm {
    return Int(`search ${this.#fresh++}`)
  }

  /** Draws all conclusions. Returns false for a contradiction. */
  #propagate(): boolean {
    const state = this.#state
    for (let round = 0; round < ROUNDS; round++) {
      state.changed = false
      for (const comparison of state.comparisons) if (state.compare(comparison) === 'false' || !state.narrowBy(comparison)) return false
      const before = this.#open
      const left: Formula[] = []
      for (const [i, formula] of before.entries()) {
        const possible = this.#possible(formula)
        if (possible === null) continue
        const [only] = possible
        if (only === undefined) return false
        if (possible.length > 1) left.push(formula)
        else {
          this.#replaceOpen([...left, ...before.slice(i + 1)])
          const from = this.#open
          if (!this.#assert(only)) return false
          // What it opened comes after the rest.
          left.push(...this.#open.slice(from.length))
        }
      }
      if (left.length !== this.#open.length || left.some((formula, i) => formula !== this.#open[i])) this.#replaceOpen(left)
      if (!state.changed) break
    }
    return true
  }

  #replaceOpen(formulas: readonly Formula[]): void {
    const before = this.#open
    this.#open = formulas
    const { changed } = this.#state
    this.#state.remember(() => (this.#open = before))
    // Which alternatives are left says nothing new about the variables.
    this.#state.changed = changed
  }

  /** The alternatives that may still hold; null if one of them does already. */
  #possible(formula: Formula): readonly Formula[] | null {
    if (formula.op !== 'or') return [formula]
    const possible: Formula[] = []
    for (const alternative of formula.args) {
      const known = this.#state.known(alternative)
      if (known === 'true') return null
      if (known === 'open') possible.push(alternative)
    }
    return possible
  }

  /** What to try next: the alternatives of a formula, or the values of an integer; null if everything is decided. */
  #choose(): readonly Formula[] | null {
    let fewest: { readonly from: Formula; readonly possible: readonly Formula[] } | null = null
    for (const from of this.#open) {
      const possible = this.#possible(from)
      if (possible !== null && (fewest === null || possible.length < fewest.possible.length)) fewest = { from, possible }
    }
    if (fewest === null) return this.#values()
    const { from, possible } = fewest
    // One of them is about to be true, and then the formula is.
    this.#replaceOpen(this.#open.filter((formula) => formula !== from))
    return this.#weakest(possible)
  }

  /**
   * The alternatives without those from which another one follows: "the batch is 1 and so is the result's" adds nothing to "both batches are equal". Each addition of
   * a residual network would otherwise multiply the paths by three.
   */
  #weakest(alternatives: readonly Formula[]): readonly Formula[] {
    let weakest = alternatives
    for (const one of alternatives) {
      const { mark } = this.#state
      if (!this.#assert(one) || weakest.some((other) => other !== one && this.#state.known(other) === 'true'))
        weakest = weakest.filter((other) => other !== one)
      this.#state.undoTo(mark)
    }
    return weakest
  }

  /** The values of an integer in a comparison that is not decided. */
  #values(): readonly Formula[] | null {
    let best: { readonly name: number | string; readonly values: readonly number[]; readonly complete: boolean } | null = null
    for (const comparison of this.#state.comparisons) {
      if (this.#state.compare(comparison) !== 'open') continue
      for (const name of this.#state.unknowns(comparison.rhs, this.#state.unknowns(comparison.lhs))) {
        const found = this.#candidates(name)
        const better = best === null || (found.complete === best.complete ? found.values.length < best.values.length : found.complete)
        if (better) best = { name, ...found }
      }
    }
    if (best === null) return null
    if (!best.complete) this.#incomplete = true
    const { name, values } = best
    return values.map((value) => sameInt(Int(name), value))
  }

  #candidates(name: number | string): { readonly values: readonly number[]; readonly complete: boolean } {
    const [low, high] = this.#state.interval(Int(name))
    const isFinite = Number.isFinite(low) && Number.isFinite(high)
    if (isFinite && high - low < RANGE) return { values: Array.from({ length: high - low + 1 }, (_, i) => low + i), complete: true }
    for (const comparison of this.#state.comparisons) {
      const dividend = this.#dividend(comparison, name)
      if (dividend !== null) return { values: [...divisors(dividend), 0].filter((value) => value >= low && value <= high), complete: true }
    }
    const from = Number.isFinite(low) ? low : Number.isFinite(high) ? high - SAMPLE : -1
    return { values: Array.from({ length: SAMPLE }, (_, i) => from + i).filter((value) => value <= high), complete: false }
  }

  /** A positive number that a variable must divide, because a multiple of it is or divides that number; null if there is none. */
  #dividend({ op, lhs, rhs }: Comparison, name: number | string): number | null {
    if (op !== '==') return null
    const contains = (term: IntTerm): boolean =>
      term.op === 'int' ? this.#state.unknowns(term).has(name) : term.op === '*' && (contains(term.lhs) || contains(term.rhs))
    for (const [side, other] of [
      [lhs, rhs],
      [rhs, lhs],
    ] as const) {
      const [low, high] = this.#state.interval(other)
      if (low !== high) continue
      if (low > 0 && contains(side)) return low
      if (low !== 0 || side.op !== '%' || !contains(side.rhs)) continue
      const [least, most] = this.#state.interval(side.lhs)
      if (least === most && least > 0) return least
    }
    return null
  }

  #model(formula: Formula): Model {
    const { ints, tensors } = namesIn(formula)
    const state = this.#state
    const types = [...tensors].map((name) => [name, state.tensor({ op: 'tensor', name })] as const)
    const names = new Set([...ints, ...types.flatMap(([, type]) => (type.op === 'sizes' ? [...namesIn(sameTensor(type, type)).ints] : []))])
    return new Model(new Map([...names].map((name) => [name, state.valueOf(name)])), new Map(types.filter(([, type]) => type.op !== 'tensor')))
  }
}

function divisors(of: number): number[] {
  const found: number[] = []
  for (let i = 1; i * i <= of; i++)
    if (of % i === 0) {
      found.push(i)
      if (i * i !== of) found.push(of / i)
    }
  return found.toSorted((a, b) => a - b)
}

/** Decides a formula. */
export const search = (formula: Formula): Answer => new Search().run(formula)
