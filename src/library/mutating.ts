// Operators that write to their arguments. Called eagerly, they do. Where a call is captured or differentiated, it becomes a functional operator, which returns the new
// values, and copies of these into the arguments: modes and autograd know both. PyTorch's auto_functionalized.
import { raiseVersion, versionOf } from '../autograd/index.ts'
import { anyRequiresGrad, dispatch, dispatchState, tensorAt } from '../dispatch/index.ts'
import type { Arg, Result } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { clone, copy_, makeOp, registerOp } from '../ops/index.ts'
import type { UntypedDeclaration } from '../ops/index.ts'
import type { FunctionSchema, SchemaArgument } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { publish } from './names.ts'
import type { OperatorName } from './names.ts'
import { asResult, specsOf } from './results.ts'

/** An operator's forward and fake, by its list of arguments. */
export interface Rules {
  forward(args: readonly Arg[]): readonly Tensor[]
  fake(args: readonly Arg[]): readonly Tensor[]
}

function checkMutable(qualname: string, schema: FunctionSchema): void {
  for (const { name, type } of schema.args)
    if (type.mutated && (type.list || type.optional || type.base !== 'Tensor'))
      throw new ArgumentError(`${qualname}: the argument '${name}' is written to, so its type must be Tensor(a!): ${schema.text}`)
  if (schema.returns.some((type) => type.mutated || type.list))
    throw new ArgumentError(
      `${qualname}: an operator that writes to its arguments returns nothing, or new tensors of a fixed number; leave the arguments out of the results: ${schema.text}`,
    )
}

const argumentText = ({ name, type, hasDefault, default: value }: SchemaArgument): string =>
  `${type.base}${type.list ? '[]' : ''}${type.optional || (hasDefault && value === null) ? '?' : ''} ${name}`

/** The declaration of an operator that writes to arguments. Defines the functional operator too. `module` is passed on to it. */
export function mutatingRules(
  known: OperatorName,
  schema: FunctionSchema,
  { forward, fake }: Rules,
  module: { readonly module?: string },
): UntypedDeclaration {
  const qualname = `${known.path}.${known.name}`
  checkMutable(qualname, schema)
  const written = schema.args.flatMap((arg, i) => (arg.type.mutated ? [i] : []))
  const functionalName: OperatorName = { ...known, name: `${known.name}_functional` }
  const returns = [...schema.returns.map(() => 'Tensor'), ...written.map(() => 'Tensor')]
  const functional = makeOp({
    schema: `${functionalName.name}(${schema.args.map(argumentText).join(', ')}) -> ${returns.length === 1 ? 'Tensor' : `(${returns.join(', ')})`}`,
    namespace: known.path,
    tags: ['custom'],
    meta: (...args) => {
      const specs = [...specsOf(fake(args)), ...specsOf(written.map((i) => tensorAt(args, i)))]
      return asResult(functional.op.schema, specs)
    },
    kernel: (...args) => {
      const copies = args.map((arg, i) => (written.includes(i) && arg instanceof Tensor ? clone(arg) : arg))
      const results = forward(copies)
      return asResult(functional.op.schema, [...results, ...written.map((i) => tensorAt(copies, i))])
    },
    ...module,
  })
  registerOp(functional)
  publish(functionalName, functional)

  const inPlace = (args: readonly Arg[]): Result => {
    const targets = written.map((i) => tensorAt(args, i))
    const before = targets.map(versionOf)
    const results = forward(args)
    // forward may have written through a typed array, which no version counts.
    targets.forEach((target, i) => {
      if (versionOf(target) === before[i]) raiseVersion(target)
    })
    return asResult(schema, results)
  }
  const functionally = (args: readonly Arg[]): Result => {
    const result = dispatch(functional.op, args)
    const values = result instanceof Tensor ? [result] : result
    const first = values.length - written.length
    written.forEach((position, i) => copy_(tensorAt(args, position), tensorAt(values, first + i)))
    return asResult(schema, values.slice(0, first))
  }
  return {
    schema: `${known.name}${schema.text.slice(schema.text.indexOf('('))}`,
    namespace: known.path,
    tags: ['custom', 'mutates'],
    meta: (...args) => asResult(schema, specsOf(fake(args))),
    decompose: (...args) => {
      const eager = dispatchState.mode === null && !(dispatchState.gradEnabled && anyRequiresGrad(args))
      return eager ? inPlace(args) : functionally(args)
    },
  }
}
