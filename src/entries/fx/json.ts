// tensorfx/fx/json: graphs as JSON.
import { installFx } from '../../install/fx.ts'
export { compareGraphs, graphToJson } from '../../fx/text/json.ts'
export { graphFromJson } from '../../fx/text/readJson.ts'
export type { Trust, TrustOptions } from '../../fx/text/decodeGraph.ts'
export type { GraphJson, NodeJson } from '../../fx/text/json.ts'

installFx()
