// Errors of graphs; tracing errors are in traceError.ts.
import { TensorfxError } from '../errors/index.ts'

/** A graph edit that is not allowed, or a graph that is not well formed. */
export class GraphError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_GRAPH', message, options)
  }
}
