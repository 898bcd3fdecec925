// Nodes for sizes: a symbolic trace hands on sizes as expressions, and the graph computes them from what it gets.
import { UnsupportedError } from '../../errors/index.ts'
import { recordValue, recordedValue } from '../../fx/graph/nodeValue.ts'
import { layoutReaders, operator, sizeFunctions } from '../../fx/index.ts'
import type { Argument, Graph, Node } from '../../fx/index.ts'
import type { SymbolicValue, TargetFunction } from '../../protocol/index.ts'
import type { DataSymbols } from '../../dispatch/index.ts'
import type { Expr, ShapeEnv, SymBool, SymFloat, SymInt } from '../../symbols/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** An operation of two operands, or of one. Operations of more are made of these, from the left. */
const FUNCTIONS: Readonly<Record<string, TargetFunction>> = {
  Add: operator.add,
  Mul: operator.mul,
  Pow: operator.pow,
  PowByNatural: operator.pow,
  FloatPow: operator.pow,
  FloorDiv: operator.floordiv,
  CleanDiv: operator.floordiv,
  Mod: operator.mod,
  PythonMod: operator.mod,
  IntTrueDiv: operator.truediv,
  FloatTrueDiv: operator.truediv,
  Max: sizeFunctions.symMax,
  Min: sizeFunctions.symMin,
  Abs: operator.abs,
  ToFloat: sizeFunctions.symFloat,
  TruncToInt: sizeFunctions.symInt,
  OpaqueUnaryFn_sqrt: sizeFunctions.symSqrt,
  Eq: operator.eq,
  Ne: operator.ne,
  Lt: operator.lt,
  Le: operator.le,
  Gt: operator.gt,
  Ge: operator.ge,
  And: operator.and_,
  Or: operator.or_,
  Not: sizeFunctions.symNot,
}

/** The nodes of the sizes of one trace, each made when it is first needed. */
export class SizeNodes {
  readonly #graph: Graph
  readonly #env: ShapeEnv
  readonly #sources = new Map<Expr, () => Node>()
  readonly #nodes = new Map<Expr, Node>()

  /** `env` knows the symbols, and what a node says of the value that it computes. */
  constructor(graph: Graph, env: ShapeEnv) {
    this.#graph = graph
    this.#env = env
  }

  /** What makes symbols of what depends on data. */
  get symbols(): DataSymbols {
    return this.#env
  }

  /** Where the symbols of an input's layout can be read. */
  addTensor(node: Node, tensor: Tensor): void {
    tensor.symSizes.forEach((size, dim) => this.#add(size, () => this.#call(layoutReaders.symSize, [node, dim])))
    tensor.symSteps.forEach((step, dim) => this.#add(step, () => this.#call(layoutReaders.symStride, [node, dim])))
    this.#add(tensor.symOffset, () => this.#call(layoutReaders.symStorageOffset, [node]))
  }

  /** Whether the graph gives a symbol: by a placeholder, or by what depends on data. */
  has(of: Expr): boolean {
    return this.#sources.has(of)
  }

  /** `read` makes the node of a symbol that nothing gives yet. */
  addSymbol(of: Expr, read: () => Node): void {
    if (!this.#sources.has(of)) this.#sources.set(of, read)
  }

  /** A node that gives a value that depends on data. */
  addData(node: Node, value: SymbolicValue): void {
    recordValue(node, value)
    if (hasExpr(value)) this.#sources.set(value.expr, () => node)
  }

  /** A node that gives a number which the trace knows as a symbol: an argument of the program, or one that depends on data. */
  addNumber(node: Node, value: SymInt | SymFloat | SymBool): void {
    this.#sources.set(value.expr, () => node)
  }

  #add(size: unknown, read: () => Node): void {
    if (!hasExpr(size) || size.expr.op !== 'symbol' || this.#sources.has(size.expr)) return
    this.#sources.set(size.expr, read)
  }

  /** What computes a symbolic value in the graph. Throws UnsupportedError for a symbol that no input of the graph has. */
  argumentOf(value: SymbolicValue): Argument {
    if (!hasExpr(value)) throw new UnsupportedError('makeFx: a symbolic size of another library was used.')
    return this.argumentOfExpr(value.expr)
  }

  /** What computes an expression in the graph, made where nodes are inserted. */
  argumentOfExpr(expr: Expr): Argument {
    return this.#argument(expr)
  }

  #argument(expr: Expr): Argument {
    const constant = constantOf(expr)
    if (constant !== null) return constant
    const known = this.#nodes.get(expr)
    if (known !== undefined && !known.erased) return known
    const node = this.#make(expr)
    if (recordedValue(node) === undefined) recordValue(node, this.#env.toValue(expr))
    this.#nodes.set(expr, node)
    return node
  }

  #make(expr: Expr): Node {
    const source = this.#sources.get(expr)
    if (source !== undefined) return source()
    if (expr.op === 'Add') return this.#sum(expr.args)
    if (expr.op === 'Piecewise') return this.#choice(expr.args)
    if (expr.op === 'FloorToInt') return this.#call(operator.floordiv, [this.#argument(only(expr)), 1])
    if (expr.op === 'CeilToInt')
      return this.#call(operator.neg, [this.#call(operator.floordiv, [this.#call(operator.neg, [this.#argument(only(expr))]), 1])])
    const fn = FUNCTIONS[expr.op]
    if (fn === undefined || expr.args.length === 0)
      throw new UnsupportedError(
        `makeFx: no input of the graph gives the size ${expr.op === 'symbol' ? expr.name : expr.op}. Make it of the sizes of the arguments.`,
      )
    const args = expr.args.map((arg) => this.#argument(arg))
    return args.length === 1 ? this.#call(fn, args) : this.#fold(fn, args)
  }

  /** `a + b - c`: terms with a negative factor are subtracted. */
  #sum(terms: readonly Expr[]): Node {
    const positive = terms.filter((term) => negated(term) === null)
    const [first, ...others] = positive
    let sum: Argument = first === undefined ? 0 : this.#argument(first)
    for (const term of others) sum = this.#call(operator.add, [sum, this.#argument(term)])
    for (const term of terms) {
      const less = negated(term)
      if (less === null) continue
      const factors: readonly Argument[] = less.map((factor) => (typeof factor === 'number' ? factor : this.#argument(factor)))
      const product = factors.length === 1 ? (factors[0] ?? 0) : this.#fold(operator.mul, factors)
      sum = this.#call(operator.sub, [sum, product])
    }
    return nodeIn(sum)
  }

  #choice([value, condition, ...rest]: readonly Expr[]): Node {
    if (value === undefined || condition === undefined) throw new UnsupportedError('makeFx: a choice between sizes has no last one.')
    const chosen = this.#argument(value)
    const [otherwise, last] = rest
    const other = otherwise !== undefined && last !== undefined && constantOf(last) === true ? this.#argument(otherwise) : this.#choice(rest)
    return this.#call(sizeFunctions.symIte, [this.#argument(condition), chosen, other])
  }

  #fold(fn: TargetFunction, [first, ...rest]: readonly Argument[]): Node {
    return nodeIn(rest.reduce((whole, arg) => this.#call(fn, [whole ?? 0, arg]), first))
  }

  #call(fn: TargetFunction, args: readonly Argument[]): Node {
    return this.#graph.callFunction(fn, args)
  }
}

const hasExpr = (size: unknown): size is SymInt | SymFloat | SymBool => typeof size === 'object' && size !== null && 'expr' in size

const only = ({ args }: Expr): Expr => {
  const [arg] = args
  if (arg === undefined) throw new UnsupportedError('makeFx: an operation on sizes has no operand.')
  return arg
}

function nodeIn(value: Argument | undefined): Node {
  if (typeof value === 'object' && value !== null && 'op' in value) return value as Node
  throw new UnsupportedError('makeFx: a computation of sizes has no symbol in it.')
}

/** The number or truth value that an expression is; null if it is none. */
function constantOf(expr: Expr): number | boolean | null {
  if (expr.op === 'number') return Number(expr.value.p) / Number(expr.value.q)
  return expr.op === 'float' || expr.op === 'boolean' ? expr.value : null
}

/** The factors of what is subtracted, for a term with a negative factor; null for any other. */
function negated(term: Expr): readonly (Expr | number)[] | null {
  const [factor, ...rest] = term.op === 'Mul' ? term.args : [term]
  const value = factor === undefined ? null : constantOf(factor)
  if (typeof value !== 'number' || value >= 0) return null
  return value === -1 && rest.length > 0 ? rest : [-value, ...rest]
}
