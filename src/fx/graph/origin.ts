// Where a node comes from in the user's program: the innermost frame of its stack trace, which was captured here or is a text from PyTorch.
import { checkNode } from '../../protocol/graphChecks.ts'
import { isFunction } from '../../protocol/index.ts'
import { CapturedStack, sourceLine } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import type { Node } from './node.ts'

/** The innermost frame of a node's stack trace; null if unknown. */
export function originOf(node: Node): Frame | null {
  checkNode('originOf', node)
  const trace = node.stackTrace
  if (trace instanceof CapturedStack) return trace.userFrame ?? null
  if (typeof trace !== 'string') return null
  return lastFrame(trace)?.frame ?? null
}

/** `model.ts:12 in Net.forward`: where a traced function is defined, according to the stack traces of its nodes; null if they do not say. */
export function placeOf(nodes: Iterable<Node>, functionName: string): string | null {
  for (const node of nodes) {
    const trace = node.op === 'placeholder' || node.op === 'output' ? null : node.stackTrace
    if (!(trace instanceof CapturedStack) || trace.userFrame === undefined) continue
    const { file, line, fn } = trace.frames.find((frame) => frame.fn === functionName) ?? trace.userFrame
    return `${file}:${line} in ${fn}`
  }
  return null
}

/** The source line of a node's innermost frame, without indentation; '' if it cannot be read. */
export function originCode(node: Node): string {
  const trace = node.stackTrace
  if (typeof trace === 'string') return lastFrame(trace)?.code ?? ''
  const frame = originOf(node)
  return frame === null ? '' : (sourceLine(frame)?.trim() ?? '')
}

/** The path of the innermost module whose call recorded the node; '' for the root, null if unknown. */
export function modulePath(node: Node): string | null {
  const stack = node.meta['nn_module_stack']
  const path: unknown = stack instanceof Map ? [...stack.keys()].at(-1) : null
  return typeof path === 'string' ? path : null
}

/** The innermost module whose call recorded the node, as `layer1.0 (BasicBlock)`; null for the root and if unknown. */
export function moduleText(node: Node): string | null {
  const stack = node.meta['nn_module_stack']
  const innermost: unknown = stack instanceof Map ? [...stack.values()].at(-1) : undefined
  if (!Array.isArray(innermost) || innermost[0] === '') return null
  const [path, type]: readonly unknown[] = innermost
  return typeof path === 'string' ? `${path} (${isFunction(type) ? type.name : typeof type === 'string' ? type : '?'})` : null
}

/** The last frame in a stack trace in PyTorch's format, and its line of code. */
function lastFrame(text: string): { readonly frame: Frame; readonly code: string } | null {
  const [, file, line, fn, code = ''] = [...text.matchAll(/File "([^"]*)", line (\d+), in (.*)\n?(.*)/g)].at(-1) ?? []
  return file === undefined || fn === undefined ? null : { frame: { file, line: Number(line), column: 1, fn }, code: code.trim() }
}
