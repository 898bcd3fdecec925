// Reads a GraphModule from the bytes of a file.
import { checkFree } from '../fx/run/graphModule.ts'
import { GraphModule } from '../fx/index.ts'
import { trustOf } from '../fx/text/decodeGraph.ts'
import type { TrustOptions } from '../fx/text/decodeGraph.ts'
import { readGraph } from '../fx/text/readJson.ts'
import * as nn from '../nn/index.ts'
import type { Place } from '../protocol/decode.ts'
import { checkCount } from '../protocol/index.ts'
import { codegenFromJson } from './codegenJson.ts'
import { readSavedModule } from './savedModule.ts'
import type { Description } from './savedModule.ts'

const WHERE = 'loadGraphModule'

/**
 * Reads a file that `saveGraphModule` wrote. The file is data, and may come from anyone: reading and calling the module runs only operators of tensorfx and functions
 * that this program registered. Throws ArgumentError for any other bytes, for a newer version of the format, and for a graph that names something else; with
 * `trust: 'code'` the graph may call any method and read any attribute, so pass that only for files whose author you trust as the author of a program.
 */
export function loadGraphModule(bytes: Uint8Array, options: TrustOptions = {}): GraphModule {
  checkCount(WHERE, arguments, 2)
  const trust = trustOf(WHERE, options)
  const making = {
    where: WHERE,
    layers: nn,
    checkFree: (path: string): void => checkFree(WHERE, path),
    make(values: Readonly<Record<string, unknown>>, json: Description, at: Place): GraphModule {
      const graph = readGraph(WHERE, json.graph, at.at('graph'), trust)
      if (json.codegen !== undefined) graph.setCodegen(codegenFromJson(json.codegen))
      return new GraphModule(values, graph, json.className)
    },
  }
  return readSavedModule(making, bytes)
}
