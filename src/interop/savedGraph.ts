// A saved graph that only runs: no Graph and no generated code, so that a page which computes with a model need not load what edits and prints graphs.
import { claimError, setMessage } from '../fx/text/explain.ts'
import { mapLeaves } from '../fx/graph/pythonValues.ts'
import type { Argument, Meta, Opcode } from '../fx/graph/node.ts'
import { checkFreeOf, placeAttribute } from '../fx/run/attributes.ts'
import { evaluateAttribute, evaluateFunction, evaluateMethod, evaluateModule, takeInput } from '../fx/run/evaluate.ts'
import { decodeGraph } from '../fx/text/decodeGraph.ts'
import type { DecodedNode, Trust } from '../fx/text/decodeGraph.ts'
import { Module, attributeAt } from '../module/index.ts'
import type { Place } from '../protocol/decode.ts'
import { isFunction, targetInfo } from '../protocol/index.ts'

/** A node that runs. It stands for its value in the arguments of later ones. */
class SavedNode {
  readonly op: Opcode
  readonly name: string
  readonly target: DecodedNode['target']
  readonly args: readonly Argument[]
  readonly kwargs: Readonly<Record<string, Argument>>
  /** The nodes whose values nothing needs after this one. */
  readonly lastUses: SavedNode[] = []

  constructor({ op, name, target, args, kwargs }: DecodedNode) {
    this.op = op
    this.name = name
    this.target = target
    this.args = args
    this.kwargs = kwargs
  }

  toString(): string {
    const target = isFunction(this.target) ? (targetInfo(this.target)?.name ?? this.target.name) : this.target
    return `node '${this.name}' (${this.op} ${target})`
  }
}

const isSavedNode = (value: unknown): value is SavedNode => value instanceof SavedNode

/** The nodes of a graph in JSON. Throws ArgumentError, which names the place, if it is not a graph. */
function readNodes(where: string, json: unknown, place: Place, trust: Trust): readonly SavedNode[] {
  const nodes: SavedNode[] = []
  decodeGraph(where, json, place, trust, (decoded) => {
    const node = new SavedNode(decoded)
    nodes.push(node)
    return node
  })
  const seen = new Set<SavedNode>()
  for (const user of nodes.toReversed())
    mapLeaves<unknown, unknown>(
      [user.args, user.kwargs],
      (input) => {
        if (!isSavedNode(input) || seen.has(input)) return input
        seen.add(input)
        user.lastUses.push(input)
        return input
      },
      isSavedNode,
    )
  return nodes
}

/**
 * A module that runs a saved graph, node by node: what `loadModel` returns. It has the parameters, buffers and layers of the GraphModule that was saved, under their names;
 * `loadGraphModule` of 'tensorfx/interop' gives a GraphModule, whose graph can be read, printed and edited.
 */
export class SavedGraph extends Module {
  /** The class name in printouts: that of the traced class or function. */
  readonly className: string
  /** What passes knew about the module. */
  meta: Meta = {}
  readonly #nodes: readonly SavedNode[]

  /** @internal */
  constructor(values: Readonly<Record<string, unknown>>, className: string, nodes: readonly SavedNode[]) {
    super()
    this.className = className
    this.#nodes = nodes
    // Owners come before what they own.
    for (const path of Object.keys(values).toSorted((a, b) => a.split('.').length - b.split('.').length))
      placeAttribute(this, path, values[path], null)
  }

  /** Reads the graph of a saved module. @internal */
  static read(
    where: string,
    values: Readonly<Record<string, unknown>>,
    className: string,
    graph: { readonly json: unknown; readonly place: Place; readonly trust: Trust },
  ): SavedGraph {
    return new SavedGraph(values, className, readNodes(where, graph.json, graph.place, graph.trust))
  }

  override getName(): string {
    return this.className
  }

  // eslint-disable-next-line typescript/no-explicit-any -- the graph, not the type, determines the arguments and the result
  override forward(...inputs: any[]): any {
    const values = new Map<SavedNode, unknown>()
    for (const node of this.#nodes) {
      let value: unknown
      try {
        value = this.#run(node, values, inputs)
      } catch (error) {
        if (claimError(error)) setMessage(error, `${error.message}\n\nWhile executing ${String(node)}`)
        throw error
      }
      if (node.op === 'output') return value
      values.set(node, value)
      for (const input of node.lastUses) values.delete(input)
    }
    return undefined
  }

  #run({ op, target, args: given, kwargs: named }: SavedNode, values: ReadonlyMap<SavedNode, unknown>, inputs: unknown[]): unknown {
    const valueOf = (leaf: unknown): unknown => (isSavedNode(leaf) ? values.get(leaf) : leaf)
    const args = given.map((arg) => mapLeaves<unknown, unknown>(arg, valueOf, isSavedNode))
    const kwargs = Object.fromEntries(Object.entries(named).map(([name, arg]) => [name, mapLeaves<unknown, unknown>(arg, valueOf, isSavedNode)]))
    if (isFunction(target)) return evaluateFunction(target, args, kwargs)
    switch (op) {
      case 'placeholder':
        return takeInput(target, args, inputs)
      case 'get_attr':
        return evaluateAttribute(this, target)
      case 'call_method':
        return evaluateMethod(target, args, kwargs)
      case 'call_module':
        return evaluateModule(target, evaluateAttribute(this, target), args, kwargs)
      default:
        return args[0]
    }
  }

  /** The attribute at a dotted path; undefined if there is none. */
  attribute(path: string): unknown {
    return attributeAt(this, path)
  }

  /** Adds a submodule at a dotted path. Returns false if something on the way is not a module. @internal */
  addSubmodule(path: string, module: Module): boolean {
    placeAttribute(this, path, module, null)
    return this.attribute(path) === module
  }

  /** Throws ArgumentError if a path contains a name that modules use themselves. @internal */
  static checkFree(where: string, path: string): void {
    checkFreeOf(SavedGraph, where, path)
  }
}
