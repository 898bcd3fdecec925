// tensorfx/fx/json: graphs as JSON.
import { installFx } from '../../install/fx.ts'
export { compareGraphs, graphFromJson, graphToJson } from '../../fx/text/json.ts'
export type { GraphJson, NodeJson } from '../../fx/text/json.ts'

installFx()
