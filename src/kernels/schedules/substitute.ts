// Statements in terms of other loops: an epilogue is written for the rows and columns of a result, a schedule walks over these by tiles.
import { call, iota, sizeOf } from '../ir/loopIr.ts'
import type { ArrayPlace, Expr, Index, LoopVar, Memory, Size, Stmt } from '../ir/loopIr.ts'
import { sizeProduct, sizeSum } from '../ir/sizes.ts'

/** What loop variables stand for: sums of a size and of other variables times strides. */
export type Substitution = ReadonlyMap<LoopVar, Omit<Index, 'dynamic'>>

/** The statements with loop variables replaced, and some expressions as a whole. An expression that is shared stays shared. */
export function substituted(stmts: readonly Stmt[], by: Substitution, values: ReadonlyMap<Expr, Expr> = new Map()): readonly Stmt[] {
  return new Substituting(by, values).stmts(stmts)
}

/** The statements with loop variables replaced, and what they access. */
export const moved = (stmts: readonly Stmt[], by: Substitution, memories: ReadonlyMap<Memory, Memory>): readonly Stmt[] =>
  new Substituting(by, new Map(), memories).stmts(stmts)

/** The statements where what is accessed in a memory lies apart for each value of a loop variable, by the elements that `steps` says. */
export function apart(stmts: readonly Stmt[], loop: LoopVar, steps: ReadonlyMap<Memory, Size>): readonly Stmt[] {
  const terms = (memory: Memory): Index['terms'] => {
    const stride = steps.get(memory)
    return stride === undefined ? [] : [{ loop, stride }]
  }
  return new Substituting(new Map(), new Map(), new Map(), terms).stmts(stmts)
}

/** The index with loop variables replaced. */
export const substitutedIndex = (index: Index, by: Substitution): Index => new Substituting(by).index(index)

class Substituting {
  readonly #by: Substitution
  readonly #done: Map<Expr, Expr>
  readonly #memories: ReadonlyMap<Memory, Memory>
  /** Terms that are added to indices of a memory. */
  readonly #terms: (memory: Memory) => Index['terms']

  constructor(
    by: Substitution,
    values: ReadonlyMap<Expr, Expr> = new Map(),
    memories: ReadonlyMap<Memory, Memory> = new Map(),
    terms: (memory: Memory) => Index['terms'] = () => [],
  ) {
    this.#by = by
    this.#done = new Map(values)
    this.#memories = memories
    this.#terms = terms
  }

  stmts(stmts: readonly Stmt[]): readonly Stmt[] {
    return stmts.map((stmt): Stmt => {
      switch (stmt.kind) {
        case 'for':
          return { ...stmt, body: this.stmts(stmt.body) }
        case 'declare':
        case 'declareArray':
          return { ...stmt, init: this.#expr(stmt.init) }
        case 'store':
          return { ...stmt, buffer: this.#memory(stmt.buffer), index: this.#placeIn(stmt.buffer, stmt.index), value: this.#expr(stmt.value) }
        case 'setElement':
          return { ...stmt, place: this.#place(stmt.place), value: this.#expr(stmt.value) }
        case 'assign':
        case 'accumulate':
          return { ...stmt, value: this.#expr(stmt.value) }
      }
    })
  }

  #memory(memory: Memory): Memory {
    return this.#memories.get(memory) ?? memory
  }

  #placeIn(memory: Memory, index: Index): Index {
    const { base, terms, dynamic } = this.index(index)
    return { base, terms: [...this.#terms(memory), ...terms], dynamic }
  }

  #place(place: ArrayPlace): ArrayPlace {
    return place.map((index) => this.index(index))
  }

  index({ base, terms, dynamic }: Index): Index {
    let start = base
    const all = terms.flatMap((term) => {
      const sum = this.#by.get(term.loop)
      if (sum === undefined) return [term]
      start = sizeSum(start, sizeProduct(sum.base, term.stride))
      return sum.terms.map(({ loop, stride }) => ({ loop, stride: sizeProduct(stride, term.stride) }))
    })
    return { base: start, terms: all, dynamic: dynamic.map(({ value, stride }) => ({ value: this.#expr(value), stride })) }
  }

  #expr(expr: Expr): Expr {
    let result = this.#done.get(expr)
    if (result === undefined) {
      result = this.#replaced(expr)
      this.#done.set(expr, result)
    }
    return result
  }

  #replaced(expr: Expr): Expr {
    switch (expr.kind) {
      case 'iota': {
        const sum = this.#by.get(expr.loop)
        if (sum === undefined) return expr

        const first = sizeOf(sum.base)
        return sum.terms.reduce<Expr>((total, { loop, stride }) => call('add', total, call('mul', iota(loop), sizeOf(stride))), first)
      }
      case 'load':
        return {
          ...expr,
          buffer: this.#memory(expr.buffer),
          index: this.#placeIn(expr.buffer, expr.index),
          mask: expr.mask === null ? null : this.#expr(expr.mask),
        }
      case 'call':
        return { ...expr, args: expr.args.map((arg) => this.#expr(arg)) }
      case 'cast':
        return { ...expr, value: this.#expr(expr.value) }
      case 'lookup':
        return { ...expr, place: this.index(expr.place) }
      case 'element':
      case 'reduceLanes':
        return { ...expr, place: this.#place(expr.place) }
      case 'const':
      case 'scalar':
      case 'sizeOf':
      case 'local':
        return expr
    }
  }
}
