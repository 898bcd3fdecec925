// PyTreeCodeGen: generates code for graphs with nested inputs and outputs. The graph has their leaves; the generated function takes and returns the nested values.
import { checkArgument, checkArray, isObject } from '../../protocol/index.ts'
import { countLeaves, treeFlattenSpec, treeSpecToString, treeUnflatten } from '../../pytree/index.ts'
import type { TreeSpec } from '../../pytree/index.ts'
import { propertyKey } from '../../protocol/index.ts'
import { CodeGen } from '../text/codegen.ts'
import type { HeadTypes } from '../text/typeText.ts'
import { GraphError, TraceError } from '../graph/errors.ts'
import { operator } from '../graph/operator.ts'
import { isProxy } from '../values/proxy.ts'

/** How nested inputs and outputs correspond to those of a graph; PyTorch's _PyTreeInfo. */
export interface PyTreeInfo {
  /** The names of the function's parameters. */
  readonly origArgs: readonly string[]
  /** The structure of the array of all inputs. Its leaves are the placeholders, in order. */
  readonly inSpec: TreeSpec
  /** The structure of the output, whose leaves the output node returns as an array; null if the output node returns the value itself. */
  readonly outSpec: TreeSpec | null
  /** The positions of parameters that the head of the function destructures, `{ scale = 2 } = {}`. A missing property is undefined. */
  readonly patterns?: readonly number[]
}

/** What generated code calls `pytree`. A traced value, whose structure is unknown, is flattened as if it had the expected structure. */
const PYTREE = { treeFlattenSpec: (value: unknown, spec: TreeSpec): unknown[] => treeFlattenSpec(value, spec, tracedChildren), treeUnflatten }

function tracedChildren(value: unknown, spec: TreeSpec): readonly unknown[] | null {
  if (!isProxy(value) || spec.kind === 'leaf') return null
  if (spec.kind === 'registered')
    throw new TraceError(
      `a traced value cannot be flattened as a ${treeSpecToString(spec)}`,
      'Trace the GraphModule with concreteArgs that have the structure of its inputs.',
    )
  const keys = spec.kind === 'array' ? spec.children.keys() : spec.keys
  return Array.from(keys, (key: unknown) => operator.getitem(value, key))
}

/** An input of the function. */
interface Input {
  readonly name: string
  readonly spec: TreeSpec
  readonly isPattern: boolean
}

/** Generates functions that take and return nested values; PyTorch's _PyTreeCodeGen. A graph that was traced with nested concreteArgs uses it. */
export class PyTreeCodeGen extends CodeGen {
  readonly info: PyTreeInfo
  readonly #inputs: readonly Input[]

  /** Throws GraphError unless there is one structure for each parameter. */
  constructor(info: PyTreeInfo) {
    super()
    checkArgument(isObject(info) && isObject(info.inSpec), 'PyTreeCodeGen', 'info', 'an object { inSpec, origArgs, … }', info)
    checkArray('PyTreeCodeGen', 'info.origArgs', info.origArgs)
    const { inSpec, origArgs, patterns = [] } = info
    if (inSpec.kind !== 'array' || inSpec.children.length !== origArgs.length)
      throw new GraphError(
        `PyTreeCodeGen: inSpec must be the structure of an array of ${origArgs.length} inputs, one for each of origArgs; got ${treeSpecToString(inSpec)}.`,
      )
    this.info = info
    this.#inputs = inSpec.children.map((spec, i) => ({ name: parameterName(origArgs[i] ?? ''), spec, isPattern: patterns.includes(i) }))
  }

  override reservedNames(): readonly string[] {
    return this.#inputs.filter(({ spec, isPattern }) => spec.kind !== 'leaf' && !isPattern).map(({ name }) => name)
  }

  override functionHead(parameters: readonly string[], types: HeadTypes | null = null): string {
    const leaves = countLeaves(this.info.inSpec)
    if (parameters.length < leaves)
      throw new GraphError(
        `PyTreeCodeGen: the structure of the inputs has ${leaves} leaves, but the graph has ${parameters.length} placeholders; set another code generator after changing the inputs.`,
      )
    const head: string[] = []
    const headTypes: (string | null)[] = []
    const lines: string[] = []
    let next = 0
    for (const [i, { name, spec, isPattern }] of this.#inputs.entries()) {
      const end = next + countLeaves(spec)
      const texts = parameters.slice(next, end)
      const known = types?.parameters.slice(next, end) ?? []
      next = end
      if (spec.kind === 'leaf') {
        head.push(...texts)
        headTypes.push(known[0] ?? null)
      } else if (isPattern) {
        const keys = keysOf(spec)
        head.push(`{ ${keys.map((key, k) => property(key, texts[k] ?? key)).join(', ')} } = {}`)
        headTypes.push(`{ ${keys.map((key, k) => `${propertyKey(key)}?: ${known[k] ?? 'any'}`).join('; ')} }`)
      } else {
        head.push(name)
        headTypes.push(null)
        lines.push(`\n  let [${texts.map(withoutDefault).join(', ')}] = pytree.treeFlattenSpec(${name}, inSpec.children[${i}])`)
      }
    }
    const returns = this.info.outSpec === null ? (types?.returns ?? null) : null
    const given = types === null ? null : { ...types, parameters: [...headTypes, ...types.parameters.slice(next)], returns }
    return super.functionHead([...head, ...parameters.slice(next)], given) + lines.join('')
  }

  override returnStatement(value: string): string {
    return super.returnStatement(this.info.outSpec === null ? value : `pytree.treeUnflatten(${value}, outSpec)`)
  }

  override additionalGlobals(): readonly (readonly [string, unknown])[] {
    const { inSpec, outSpec } = this.info
    return [['pytree', PYTREE], ['inSpec', inSpec], ...(outSpec === null ? [] : ([['outSpec', outSpec]] as const))]
  }

  override processInputs(inputs: readonly unknown[]): readonly unknown[] {
    const leaves: unknown[] = []
    for (const [i, { spec, isPattern }] of this.#inputs.entries()) {
      if (isPattern) for (const key of keysOf(spec)) leaves.push(Reflect.get(Object(inputs[i] ?? {}), key))
      else if (i < inputs.length) leaves.push(...PYTREE.treeFlattenSpec(inputs[i], spec))
      // Patterns have defaults, so inputs before them may be missing. Otherwise a missing input ends the list, and running the graph reports it.
      else if (this.#inputs.some((later, k) => k > i && later.isPattern)) leaves.push(undefined)
      else break
    }
    return [...leaves, ...inputs.slice(this.#inputs.length)]
  }

  override processOutputs(output: unknown): unknown {
    if (this.info.outSpec === null) return output
    if (!Array.isArray(output))
      throw new GraphError('PyTreeCodeGen: the output node of a graph with an outSpec must return the leaves of the output as an array.')
    return treeUnflatten(output, this.info.outSpec)
  }

  override clone(): PyTreeCodeGen {
    return Object.assign(new PyTreeCodeGen(this.info), { bodyTransformer: this.bodyTransformer })
  }
}

const keysOf = (spec: TreeSpec): readonly string[] => (spec.kind === 'object' ? spec.keys : [])

/** A name as that of a parameter. Names that the tracer finds stay as they are; others can only come from a program or a file. */
const parameterName = (name: string): string => name.replace(/[^\p{ID_Continue}$]/gu, '_')

/** The variable in the text of a parameter, which may be followed by a default and a comment. */
const nameIn = (text: string): string => /^[\w$]+/.exec(text)?.[0] ?? text

/** The text of a parameter without its default: the name and the comment. */
const withoutDefault = (text: string): string => /^[\w$]+(?: \/\*.*?\*\/)?/.exec(text)?.[0] ?? text

/** A property of a pattern. */
const property = (key: string, text: string): string => (nameIn(text) === key ? text : `${propertyKey(key)}: ${text}`)
