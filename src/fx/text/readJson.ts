// Graphs from JSON.
import { ArgumentError } from '../../errors/index.ts'
import { Place } from '../../protocol/decode.ts'
import { checkCount, isPlainObject } from '../../protocol/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import { Graph } from '../graph/graph.ts'
import { decodeGraph, trustOf } from './decodeGraph.ts'
import type { Trust, TrustOptions } from './decodeGraph.ts'
import type { GraphJson } from './json.ts'

/**
 * Reads a graph. Throws ArgumentError, which names the place, for an unknown version, function or node, and for data that are not the JSON of a graph. Unless
 * `trust` is 'code', also for a node that names anything but operators, registered functions, public members of tensors, and attributes.
 */
export function graphFromJson(json: GraphJson, options: TrustOptions = {}): Graph {
  checkCount('graphFromJson', arguments, 2)
  const trust = trustOf('graphFromJson', options)
  if (!isPlainObject(json) || typeof json.version !== 'number' || !Array.isArray(json.nodes))
    throw new ArgumentError('graphFromJson: this is not the JSON of a graph: `version` and `nodes` are missing.')
  return readGraph('graphFromJson', json, new Place('graphFromJson', 'the graph'), trust)
}

/** {@link graphFromJson} for a part of a file that `where` reads. */
export function readGraph(where: string, json: unknown, place: Place, trust: Trust | 'shown'): Graph {
  const graph = new Graph()
  const { sourceHint } = decodeGraph(where, json, place, trust, ({ op, name, target, args, kwargs, type, meta, stack }) => {
    const node = graph.createNode(op, target, args, kwargs, name, type)
    for (const [key, value] of meta) node.meta[key] = value
    if (stack !== null) node.stackTrace = typeof stack === 'string' ? stack : CapturedStack.of(stack)
    return node
  })
  graph.sourceHint = sourceHint
  return graph
}
