// Formulas in SMT-LIB, the language of solvers such as Z3, and their answers.
import { InternalError } from '../../../../errors/index.ts'
import { Model, namesIn } from './model.ts'
import { D, number, tensor, z3Dyn } from '../z3Types.ts'
import type { DimTerm, Formula, IntTerm, TensorTermZ3 } from '../z3Types.ts'

/** What a solver says of assertions, and the values that it found, as definitions in SMT-LIB. */
export type SmtAnswer = { readonly status: 'sat'; readonly definitions: string } | { readonly status: 'unsat' | 'unknown' }

/** Decides declarations and assertions in SMT-LIB. */
export type SmtSolver = (assertions: string) => Promise<SmtAnswer>

type Name = number | string

const quoted = (sort: string, name: Name): string => `|${sort} ${String(name)}|`
const OPERATORS = { '+': '+', '-': '-', '*': '*', '/': 'div', '%': 'mod' } as const

function int(term: IntTerm): string {
  if (term.op === 'number') return term.value < 0 ? `(- ${-term.value})` : String(term.value)
  return term.op === 'int' ? quoted('int', term.name) : `(${OPERATORS[term.op]} ${int(term.lhs)} ${int(term.rhs)})`
}

const dim = ({ flag, value }: DimTerm): string => `(dim ${int(flag)} ${int(value)})`

function type(term: TensorTermZ3): string {
  if (term.op === 'tensor') return quoted('tensor', term.name)
  return term.op === 'dyn' ? 'Dyn' : `(tensor${term.dims.length} ${term.dims.map(dim).join(' ')})`
}

function formulaScript(f: Formula): string {
  switch (f.op) {
    case 'true':
    case 'false':
      return f.op
    case 'bool':
      return quoted('bool', f.name)
    case 'and':
    case 'or':
      return f.args.length === 0 ? String(f.op === 'and') : `(${f.op} ${f.args.map(formulaScript).join(' ')})`
    case 'not':
      return `(not ${formulaScript(f.arg)})`
    case '!=':
      return `(not (= ${int(f.lhs)} ${int(f.rhs)}))`
    case '==':
      switch (f.sort) {
        case 'int':
          return `(= ${int(f.lhs)} ${int(f.rhs)})`
        case 'dim':
          return `(= ${dim(f.lhs)} ${dim(f.rhs)})`
        case 'tensor':
          return `(= ${type(f.lhs)} ${type(f.rhs)})`
        default:
          return `(= ${formulaScript(f.lhs)} ${formulaScript(f.rhs)})`
      }
    default:
      return `(${f.op} ${int(f.lhs)} ${int(f.rhs)})`
  }
}

const DATATYPES = `(declare-datatypes ((Dim 0)) (((dim (flag Int) (value Int)))))
(declare-datatypes ((TensorType 0)) (((Dyn) ${[1, 2, 3, 4].map((rank) => `(tensor${rank} ${Array.from({ length: rank }, (_, i) => `(d${rank}${i} Dim)`).join(' ')})`).join(' ')})))`

/** The declarations and assertions of a formula. */
function assertions(formula: Formula): string {
  const { ints, tensors, bools } = namesIn(formula)
  const declared = [
    ...[...ints].map((name) => `(declare-const ${quoted('int', name)} Int)`),
    ...[...tensors].map((name) => `(declare-const ${quoted('tensor', name)} TensorType)`),
    ...[...bools].map((name) => `(declare-const ${quoted('bool', name)} Bool)`),
  ]
  const parts = formula.op === 'and' ? formula.args : [formula]
  return [DATATYPES, ...declared, ...parts.map((part) => `(assert ${formulaScript(part)})`)].join('\n')
}

/** The script that decides a formula. */
export const toSmtLib = (formula: Formula): string => `${assertions(formula)}\n(check-sat)`

type Expression = string | readonly Expression[]

/** Reads nested parentheses. */
function parse(text: string): Expression {
  const stack: Expression[][] = [[]]
  for (const [token] of text.matchAll(/\|[^|]*\||[()]|[^\s()|]+/g)) {
    if (token === '(') stack.push([])
    else if (token === ')') {
      const done = stack.pop() ?? []
      stack.at(-1)?.push(done)
    } else stack.at(-1)?.push(token)
  }
  return stack[0]?.[0] ?? []
}

function readInt(value: Expression | undefined): number {
  if (typeof value === 'string') return Number(value)
  const [sign, size] = value ?? []
  if (sign === '-' && typeof size === 'string') return -Number(size)
  throw new InternalError(`solve: the solver gave ${JSON.stringify(value)} for an integer`)
}

function readTensor(value: Expression | undefined): TensorTermZ3 {
  if (value === undefined || typeof value === 'string') return z3Dyn
  return tensor(
    ...value.slice(1).map((size) => {
      const [, flag, number_] = typeof size === 'string' ? [] : size
      return D(number(readInt(flag)), number(readInt(number_)))
    }),
  )
}

/** Reads `(define-fun |int 3| () Int 5)` and `(define-fun |tensor 1| () TensorType (tensor1 (dim 1 5)))`, one after the other. */
function readModel(text: string): Model {
  const [ints, tensors] = [new Map<Name, number>(), new Map<Name, TensorTermZ3>()]
  const definitions = parse(`(${text})`)
  for (const definition of typeof definitions === 'string' ? [] : definitions) {
    const [, name, , , value] = typeof definition === 'string' ? [] : definition
    const match = typeof name === 'string' ? /^\|(int|tensor) (.*)\|$/.exec(name) : null
    const own = match?.[2] ?? ''
    const key: Name = /^\d+$/.test(own) ? Number(own) : own
    if (match?.[1] === 'int') ints.set(key, readInt(value))
    else if (match?.[1] === 'tensor') tensors.set(key, readTensor(value))
  }
  return new Model(ints, tensors)
}

/** Decides a formula with a solver that reads SMT-LIB. */
export async function runZ3(solver: SmtSolver, formula: Formula): Promise<{ status: 'sat' | 'unsat' | 'unknown'; model: Model | null }> {
  const answer = await solver(assertions(formula))
  return { status: answer.status, model: answer.status === 'sat' ? readModel(answer.definitions) : null }
}
