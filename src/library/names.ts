// The names of operators that a program defines, `namespace::name`, and torch.ops, where they are found again.
import { ArgumentError } from '../errors/index.ts'
import { camelCase, parseSchema, valueText } from '../protocol/index.ts'
import type { FunctionSchema, TargetFunction } from '../protocol/index.ts'

/** A namespace of torch.ops: functions by their names in camelCase. */
export type OperatorNamespace = Readonly<Record<string, TargetFunction>>

/** Namespaces that tensorfx uses itself. */
const RESERVED: ReadonlySet<string> = new Set(['tensorfx', 'higher_order', 'testing'])

const namespaces = new Map<string, Record<string, TargetFunction>>()

/** Where an operator's parts are. */
export interface OperatorName {
  readonly namespace: string
  readonly name: string
  /** The namespace as graphs print it: `torch.ops.mylib`. */
  readonly path: string
}

/** Reads `mylib::my_op`. `where` is the function that got it. Throws ArgumentError. */
export function readName(where: string, text: string): OperatorName {
  const [, namespace, name] = (typeof text === 'string' ? /^([A-Za-z]\w*)::(\w+)$/.exec(text) : null) ?? []
  if (namespace === undefined || name === undefined)
    throw new ArgumentError(`${where}: the name of an operator must be 'namespace::name', such as 'mylib::my_op', got ${valueText(text)}.`)
  if (RESERVED.has(namespace))
    throw new ArgumentError(`${where}: the namespace '${namespace}' belongs to tensorfx; choose one of your own for '${text}'.`)
  return { namespace, name, path: `torch.ops.${namespace}` }
}

/** The schema of an operator: its text may leave out the name. Throws ArgumentError if it cannot be read, or has another name. */
export function readSchema(where: string, { namespace, name }: OperatorName, text: string): FunctionSchema {
  if (typeof text !== 'string')
    throw new ArgumentError(`${where}: '${namespace}::${name}' needs a schema, such as schema: '(Tensor x, float eps=1e-05) -> Tensor'.`)
  const given = text.trim()
  const schema = parseSchema(given.startsWith('(') ? `${name}${given}` : given)
  if (
    schema.name !== name ||
    schema.overload !== '' ||
    !(given.startsWith('(') || given.startsWith(`${name}(`) || given.startsWith(`${namespace}::`))
  )
    throw new ArgumentError(`${where}: the schema of '${namespace}::${name}' has another name: '${given}'. Leave the name out of the schema.`)
  const names = schema.args.map((arg) => arg.name)
  const twice = names.find((arg, i) => names.indexOf(arg) !== i)
  if (twice !== undefined) throw new ArgumentError(`${where}: the schema of '${namespace}::${name}' has two arguments called '${twice}'.`)
  return schema
}

/** The name and the schema of a definition whose options have these names. Throws ArgumentError for others. */
export function readDefinition(
  where: string,
  name: string,
  options: { readonly schema: string },
  names: readonly string[],
): readonly [OperatorName, FunctionSchema] {
  const operator = readName(where, name)
  for (const key of Object.keys(options))
    if (!names.includes(key)) throw new ArgumentError(`${where}: unknown option '${key}' of '${name}'; known are ${names.join(', ')}.`)
  return [operator, readSchema(where, operator, options.schema)]
}

/** Throws ArgumentError if torch.ops has an operator of this name already. */
export function checkFree(where: string, { namespace, name }: OperatorName): void {
  if (namespaces.get(namespace)?.[camelCase(name)] !== undefined)
    throw new ArgumentError(
      `${where}: '${namespace}::${name}' is already defined, as torch.ops.${namespace}.${camelCase(name)}. Give the second operator another name, or define it once and import it.`,
    )
}

/** The live part of torch.ops: one property for each namespace of a program. */
export const operatorNamespaces: Record<string, OperatorNamespace> = {}

/** Makes an operator reachable as `torch.ops.namespace.name`. */
export function publish({ namespace, name }: OperatorName, fn: TargetFunction): void {
  let members = namespaces.get(namespace)
  if (members === undefined) {
    // Without a prototype, so that no name is there from the start.
    members = Object.create(null) as Record<string, TargetFunction>
    namespaces.set(namespace, members)
    operatorNamespaces[namespace] = members
  }
  members[camelCase(name)] = fn
}
