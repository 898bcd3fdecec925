// Values of variables that make a formula true.
import { ArgumentError } from '../../../../errors/index.ts'
import { Dyn, tensorTypeOf } from '../../gradualTypes/tensorType.ts'
import type { DynType, TensorType } from '../../gradualTypes/tensorType.ts'
import { D, intText, number, tensor, z3Dyn } from '../z3Types.ts'
import type { DimTerm, Formula, IntTerm, TensorTermZ3 } from '../z3Types.ts'

/** The integer that a term is. Division rounds down and the rest is not negative, for positive divisors, as in Z3; null for a division by zero, which may be anything. */
function evaluateInt(term: IntTerm, valueOf: (name: number | string) => number): number | null {
  if (term.op === 'number') return term.value
  if (term.op === 'int') return valueOf(term.name)
  const [a, b] = [evaluateInt(term.lhs, valueOf), evaluateInt(term.rhs, valueOf)]
  return a === null || b === null ? null : compute(term.op, a, b)
}

/** One operation of integers. */
export function compute(op: '+' | '-' | '*' | '/' | '%', a: number, b: number): number | null {
  switch (op) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    default: {
      if (b === 0) return null
      const rest = ((a % b) + Math.abs(b)) % Math.abs(b)
      return op === '%' ? rest : (a - rest) / b
    }
  }
}

/** Values of variables. */
export class Model {
  readonly #ints: ReadonlyMap<number | string, number>
  readonly #tensors: ReadonlyMap<number | string, TensorTermZ3>

  constructor(ints: ReadonlyMap<number | string, number>, tensors: ReadonlyMap<number | string, TensorTermZ3>) {
    this.#ints = ints
    this.#tensors = tensors
  }

  /** The value of an integer. Variables of which the formula says nothing are 0. Throws ArgumentError if the term divides by zero. */
  int(term: IntTerm): number {
    const value = evaluateInt(term, (name) => this.#ints.get(name) ?? 0)
    if (value === null) throw new ArgumentError(`Model: ${intText(term)} divides by zero.`)
    return value
  }

  /** A size with the values of its variables. */
  dim({ flag, value }: DimTerm): DimTerm {
    return D(number(this.int(flag)), number(this.int(value)))
  }

  /** A type with the values of its variables; `Const(n)` is the type of `TV(n)`. */
  tensor(term: TensorTermZ3): TensorTermZ3 {
    const known = term.op === 'tensor' ? (this.#tensors.get(term.name) ?? z3Dyn) : term
    return known.op === 'sizes' ? tensor(...known.dims.map((dim) => this.dim(dim))) : z3Dyn
  }

  /** The type of a tensor: {@link Dyn}, or a TensorType in which sizes whose flag is 0 are Dyn. */
  type(term: TensorTermZ3): TensorType | DynType {
    const value = this.tensor(term)
    if (value.op !== 'sizes') return Dyn
    return tensorTypeOf(value.dims.map(({ flag, value: size }) => (this.int(flag) === 0 ? Dyn : this.int(size))))
  }
}

/** The names in a formula: of integers, of tensors, and of conditions. */
export interface FormulaNames {
  readonly ints: ReadonlySet<number | string>
  readonly tensors: ReadonlySet<number | string>
  readonly bools: ReadonlySet<number | string>
}

/** The names in a formula. */
export function namesIn(formula: Formula): FormulaNames {
  const [ints, tensors, bools] = [new Set<number | string>(), new Set<number | string>(), new Set<number | string>()]
  const inInt = (term: IntTerm): void => {
    if (term.op === 'int') ints.add(term.name)
    else if (term.op !== 'number') {
      inInt(term.lhs)
      inInt(term.rhs)
    }
  }
  const inDim = ({ flag, value }: DimTerm): void => {
    inInt(flag)
    inInt(value)
  }
  const inTensor = (term: TensorTermZ3): void => {
    if (term.op === 'tensor') tensors.add(term.name)
    else if (term.op === 'sizes') term.dims.forEach(inDim)
  }
  const visit = (f: Formula): void => {
    switch (f.op) {
      case 'true':
      case 'false':
        return
      case 'bool':
        bools.add(f.name)
        return
      case 'and':
      case 'or':
        f.args.forEach(visit)
        return
      case 'not':
        return visit(f.arg)
      case '==':
        switch (f.sort) {
          case 'int':
            inInt(f.lhs)
            return inInt(f.rhs)
          case 'dim':
            inDim(f.lhs)
            return inDim(f.rhs)
          case 'tensor':
            inTensor(f.lhs)
            return inTensor(f.rhs)
          default:
            visit(f.lhs)
            return visit(f.rhs)
        }
      default:
        inInt(f.lhs)
        inInt(f.rhs)
    }
  }
  visit(formula)
  return { ints, tensors, bools }
}
