// What is shown for one node: its operation, value, module and place, and, for a layer or an attribute, its configuration and tensors.
import { Module, constantsOf } from '../../module/index.ts'
import { camelCase, isFunction, isObject } from '../../protocol/index.ts'
import type { Node } from '../graph/node.ts'
import { originCode, originOf } from '../graph/origin.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { annotation } from '../text/annotation.ts'
import { formatArg, nodeTargetText } from '../text/format.ts'
import { tensorFacts } from './tensorFacts.ts'
import type { Change, TargetFacts, ViewModule, ViewNode } from './view.ts'

/** What is known of a target that is neither a layer nor a tensor. */
export const NONE: TargetFacts = { type: null, config: {}, tensors: [] }

/** Reads what nodes call: several nodes may call the same layer, which is looked at once. */
export class TargetReader {
  readonly #gm: GraphModule
  readonly #readValues: boolean
  readonly #known = new Map<string, TargetFacts>()

  constructor(gm: GraphModule, readValues: boolean) {
    this.#gm = gm
    this.#readValues = readValues
  }

  of(node: Node): TargetFacts {
    if (node.op !== 'call_module' && node.op !== 'get_attr') return NONE
    const target = String(node.target)
    const known = this.#known.get(target)
    if (known !== undefined) return known
    const value = this.#gm.attribute(target)
    const facts = value instanceof Module ? this.#layer(value) : this.#attribute(target, value)
    this.#known.set(target, facts)
    return facts
  }

  #layer(module: Module): TargetFacts {
    const named = [...module.namedParameters(), ...module.namedBuffers()]
    return {
      type: module.constructor.name,
      config: Object.fromEntries(constantsOf(module).map(([name, value]) => [camelCase(name), configText(value)])),
      tensors: named.flatMap(([path, tensor]) => tensorFacts(path, tensor, this.#readValues) ?? []),
    }
  }

  #attribute(path: string, value: unknown): TargetFacts {
    const facts = tensorFacts(path, value, this.#readValues)
    if (facts !== null) return { type: facts.kind === 'parameter' ? 'Parameter' : 'Buffer', config: {}, tensors: [facts] }
    return isObject(value) ? { ...NONE, type: value.constructor?.name ?? null } : NONE
  }
}

/** A value of a configuration. */
export const configText = (value: unknown): string => (Array.isArray(value) ? `[${value.map(configText).join(', ')}]` : String(value))

/** What is shown for a node. */
export function viewNode(node: Node, facts: TargetFacts, change: Change, was: string | null): ViewNode {
  const origin = originOf(node)
  const trace = node.stackTrace
  return {
    name: node.name,
    op: node.op,
    target: nodeTargetText(node),
    ...facts,
    spec: annotation(node),
    args: node.args.map((a) => formatArg(a)),
    kwargs: Object.fromEntries(Object.entries(node.kwargs).map(([k, v]) => [k, formatArg(v)])),
    inputs: node.allInputNodes.map((n) => n.name),
    users: [...node.users].map((n) => n.name),
    modules: modulesOf(node),
    origin: origin === null ? null : { file: origin.file, line: origin.line, fn: origin.fn, code: originCode(node) },
    stack: trace === null || trace === undefined ? null : String(trace),
    change,
    was,
  }
}

function modulesOf(node: Node): ViewModule[] {
  const stack = node.meta['nn_module_stack']
  if (!(stack instanceof Map)) return []
  const modules = [...stack].flatMap(([path, value]): ViewModule[] => {
    const type: unknown = Array.isArray(value) ? value[1] : null
    return typeof path !== 'string' || path === '' ? [] : [{ path, className: isFunction(type) ? type.name : typeof type === 'string' ? type : '' }]
  })
  if (node.op === 'call_module' && modules.at(-1)?.path.split('@')[0] === node.target) modules.pop()
  return modules
}
