// PyTreeCodeGen: code for graphs whose inputs and outputs are nested values. The graph holds their leaves; the generated function takes and returns
// the whole values.
import { countLeaves, treeFlattenSpec, treeSpecToString, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { CodeGen } from './codegen.ts'
import { GraphError } from './errors.ts'
import type { HeadTypes } from './functionHead.ts'
import { operator } from './operator.ts'
import { isProxy } from './proxy.ts'
import { TraceError } from './traceError.ts'

/** How nested inputs and outputs lie in a graph; PyTorch's _PyTreeInfo. */
export interface PyTreeInfo {
  /** Names of the function's parameters. */
  readonly origArgs: readonly string[]
  /** Structure of the array of all inputs; its leaves are the placeholders, in order. */
  readonly inSpec: TreeSpec
  /** Structure of the output, whose leaves the output node returns as an array; null when the output node returns the value itself. */
  readonly outSpec: TreeSpec | null
  /** Positions of parameters that the function's head takes apart by property, `{ scale = 2 } = {}`; a missing property is undefined. */
  readonly patterns?: readonly number[]
}

/** What generated code calls `pytree`; a traced value, whose structure nobody knows, is taken apart as the structure says. */
const PYTREE = { treeFlattenSpec: (value: unknown, spec: TreeSpec): unknown[] => treeFlattenSpec(value, spec, tracedChildren), treeUnflatten }

function tracedChildren(value: unknown, spec: TreeSpec): readonly unknown[] | null {
  if (!isProxy(value) || spec.kind === 'leaf') return null
  if (spec.kind === 'registered')
    throw new TraceError(
      `a traced value cannot be taken apart as a ${treeSpecToString(spec)}`,
      'Trace the GraphModule with concreteArgs that have the structure of its inputs.',
    )
  const keys = spec.kind === 'array' ? spec.children.keys() : spec.keys
  return Array.from(keys, (key: unknown) => operator.getitem(value, key))
}

/** Generates functions of nested values; PyTorch's _PyTreeCodeGen. A graph that was traced with nested concreteArgs has one. */
export class PyTreeCodeGen extends CodeGen {
  readonly info: PyTreeInfo
  readonly #children: readonly TreeSpec[]

  /** Throws GraphError when there is not one structure for each parameter. */
  constructor(info: PyTreeInfo) {
    super()
    const { inSpec } = info
    if (inSpec.kind !== 'array' || inSpec.children.length !== info.origArgs.length)
      throw new GraphError(
        `PyTreeCodeGen: inSpec must be the structure of an array of ${info.origArgs.length} inputs, one for each of origArgs; got ${treeSpecToString(inSpec)}.`,
      )
    this.info = info
    this.#children = inSpec.children
  }

  override reservedNames(): readonly string[] {
    return this.info.origArgs.filter((_, i) => this.#isNested(i) && !this.#isPattern(i))
  }

  override functionHead(parameters: readonly string[], types: HeadTypes | null = null): string {
    const leaves = countLeaves(this.info.inSpec)
    if (parameters.length < leaves)
      throw new GraphError(
        `PyTreeCodeGen: the structure of the inputs has ${leaves} leaves, but the graph has ${parameters.length} placeholders; after changing the inputs, set another code generator.`,
      )
    const head: string[] = []
    const headTypes: (string | null)[] = []
    const lines: string[] = []
    let next = 0
    for (const [i, spec] of this.#children.entries()) {
      const end = next + countLeaves(spec)
      const texts = parameters.slice(next, end)
      const known = types?.parameters.slice(next, end) ?? []
      next = end
      const name = this.info.origArgs[i] as string
      if (!this.#isNested(i)) {
        head.push(texts[0] as string)
        headTypes.push(known[0] ?? null)
      } else if (this.#isPattern(i)) {
        head.push(`{ ${texts.map((text, k) => property(keysOf(spec)[k] as string, text)).join(', ')} } = {}`)
        headTypes.push(
          `{ ${keysOf(spec)
            .map((key, k) => `${key}?: ${known[k] ?? 'any'}`)
            .join('; ')} }`,
        )
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
    for (const [i, spec] of this.#children.entries()) {
      if (this.#isPattern(i)) {
        const options = (inputs[i] ?? {}) as Readonly<Record<string, unknown>>
        for (const key of keysOf(spec)) leaves.push(options[key])
      } else if (i >= inputs.length) {
        // Later patterns have defaults of their own; otherwise what is missing is left out, so that its absence is noticed.
        if (!(this.info.patterns ?? []).some((p) => p > i)) break
        leaves.push(undefined)
      } else leaves.push(...PYTREE.treeFlattenSpec(inputs[i], spec))
    }
    return [...leaves, ...inputs.slice(this.#children.length)]
  }

  override processOutputs(output: unknown): unknown {
    return this.info.outSpec === null ? output : treeUnflatten(output as readonly unknown[], this.info.outSpec)
  }

  override clone(): PyTreeCodeGen {
    return Object.assign(new PyTreeCodeGen(this.info), { bodyTransformer: this.bodyTransformer })
  }

  #isNested(i: number): boolean {
    return this.#children[i]?.kind !== 'leaf'
  }

  #isPattern(i: number): boolean {
    return this.info.patterns?.includes(i) === true
  }
}

const keysOf = (spec: TreeSpec): readonly string[] => (spec.kind === 'object' ? (spec.keys as readonly string[]) : [])

/** The variable in the text of a parameter, which may have a default and a comment behind it. */
const nameIn = (text: string): string => /^[\w$]+/.exec(text)?.[0] ?? text

/** A parameter without its default value: the name, and the comment that tells of its value. */
const withoutDefault = (text: string): string => /^[\w$]+(?: \/\*.*?\*\/)?/.exec(text)?.[0] ?? text

const property = (key: string, text: string): string => (nameIn(text) === key ? text : `${key}: ${text}`)
