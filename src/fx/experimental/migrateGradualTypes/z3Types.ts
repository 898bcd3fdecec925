// Formulas about tensors and sizes, for a solver: the sorts that Z3 gets, as plain values. A size is a pair of a flag (0 if it is Dyn, 1 if it is known) and a value; a
// tensor's type is Dyn or has one to four sizes. They print as Z3's Python API prints them. PyTorch's torch.fx.experimental.migrate_gradual_types.z3_types.

/** An integer. */
export type IntTerm =
  | { readonly op: 'number'; readonly value: number }
  | { readonly op: 'int'; readonly name: number | string }
  | { readonly op: '+' | '-' | '*' | '/' | '%'; readonly lhs: IntTerm; readonly rhs: IntTerm }

/** A size. */
export interface DimTerm {
  readonly flag: IntTerm
  readonly value: IntTerm
}

/** The type of a tensor. */
export type TensorTermZ3 =
  | { readonly op: 'tensor'; readonly name: number | string }
  | { readonly op: 'dyn' }
  | { readonly op: 'sizes'; readonly dims: readonly DimTerm[] }

/** What a solver decides. */
export type Formula =
  | { readonly op: 'true' | 'false' }
  | { readonly op: 'bool'; readonly name: number | string }
  | { readonly op: 'and' | 'or'; readonly args: readonly Formula[] }
  | { readonly op: 'not'; readonly arg: Formula }
  | { readonly op: '=='; readonly sort: 'int'; readonly lhs: IntTerm; readonly rhs: IntTerm }
  | { readonly op: '=='; readonly sort: 'dim'; readonly lhs: DimTerm; readonly rhs: DimTerm }
  | { readonly op: '=='; readonly sort: 'tensor'; readonly lhs: TensorTermZ3; readonly rhs: TensorTermZ3 }
  | { readonly op: '=='; readonly sort: 'bool'; readonly lhs: Formula; readonly rhs: Formula }
  | { readonly op: '!=' | '<=' | '<'; readonly lhs: IntTerm; readonly rhs: IntTerm }

/** The formula that is always true. */
export const TRUE: Formula = Object.freeze({ op: 'true' })
/** The formula that is never true. */
export const FALSE: Formula = Object.freeze({ op: 'false' })
/** The type Dyn. PyTorch's z3_dyn. */
export const z3Dyn: TensorTermZ3 = Object.freeze({ op: 'dyn' })

/** A number. */
export const number = (value: number): IntTerm => ({ op: 'number', value })
/** A variable that stands for an integer; Z3's Int. */
export const Int = (name: number | string): IntTerm => ({ op: 'int', name })
const int = (value: IntTerm | number): IntTerm => (typeof value === 'number' ? number(value) : value)

/** A size: its flag is 0 if it is Dyn, and 1 if it is known. PyTorch's D. */
export const D = (flag: IntTerm | number, value: IntTerm | number): DimTerm => ({ flag: int(flag), value: int(value) })
/** A variable that stands for the type of a tensor: `Const(n)` is that of `TV(n)`. */
export const Const = (name: number | string): TensorTermZ3 => ({ op: 'tensor', name })
/** The type of tensors with these sizes, at most four. PyTorch's tensor1 to tensor4. */
export const tensor = (...dims: readonly DimTerm[]): TensorTermZ3 => ({ op: 'sizes', dims })
/** Two types of tensors are the same. */
export const sameTensor = (lhs: TensorTermZ3, rhs: TensorTermZ3): Formula => ({ op: '==', sort: 'tensor', lhs, rhs })
/** Two integers are the same. */
export const sameInt = (lhs: IntTerm | number, rhs: IntTerm | number): Formula => ({ op: '==', sort: 'int', lhs: int(lhs), rhs: int(rhs) })
/** A comparison of integers. */
export const compare = (lhs: IntTerm | number, op: '!=' | '<=' | '<', rhs: IntTerm | number): Formula => ({ op, lhs: int(lhs), rhs: int(rhs) })
/** All of these hold. */
export const And = (...args: readonly Formula[]): Formula => ({ op: 'and', args })
/** One of these holds. */
export const Or = (...args: readonly Formula[]): Formula => ({ op: 'or', args })
/** This does not hold. */
export const Not = (arg: Formula): Formula => ({ op: 'not', arg })

const nameText = (name: number | string): string => (typeof name === 'number' ? `k!${name}` : name)

/** An integer as text. */
export function intText(term: IntTerm, nested = false): string {
  if (term.op === 'number') return String(term.value)
  if (term.op === 'int') return nameText(term.name)
  const text = `${intText(term.lhs, true)}${term.op === '*' || term.op === '/' || term.op === '%' ? term.op : ` ${term.op} `}${intText(term.rhs, true)}`
  return nested ? `(${text})` : text
}

const dimText = ({ flag, value }: DimTerm): string => `dim(${intText(flag)}, ${intText(value)})`

/** A type as text: `tensor2(dim(1, 2), dim(0, k!7))`. */
export function tensorText(term: TensorTermZ3): string {
  if (term.op === 'tensor') return nameText(term.name)
  return term.op === 'dyn' ? 'Dyn(dyn)' : `tensor${term.dims.length}(${term.dims.map(dimText).join(', ')})`
}

/** A formula as text. */
export function formulaText(formula: Formula): string {
  switch (formula.op) {
    case 'true':
      return 'True'
    case 'false':
      return 'False'
    case 'bool':
      return nameText(formula.name)
    case 'and':
      return `And(${formula.args.map(formulaText).join(', ')})`
    case 'or':
      return `Or(${formula.args.map(formulaText).join(', ')})`
    case 'not':
      return `Not(${formulaText(formula.arg)})`
    case '==':
      switch (formula.sort) {
        case 'int':
          return `${intText(formula.lhs)} == ${intText(formula.rhs)}`
        case 'dim':
          return `${dimText(formula.lhs)} == ${dimText(formula.rhs)}`
        case 'tensor':
          return `${tensorText(formula.lhs)} == ${tensorText(formula.rhs)}`
        default:
          return `${formulaText(formula.lhs)} == (${formulaText(formula.rhs)})`
      }
    default:
      return `${intText(formula.lhs)} ${formula.op} ${intText(formula.rhs)}`
  }
}
