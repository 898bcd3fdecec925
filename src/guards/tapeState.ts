// The state of the tape on which compiled backwards depend.
import { FunctionNode, OpNode } from '../autograd/index.ts'
import type { GradNode } from '../autograd/index.ts'
import type { StateKind } from './stateKind.ts'

const derivative: StateKind<GradNode, object | null> = {
  name: 'the operators and Functions on the tape',
  compile: 'tape',
  read: (node) => (node instanceof OpNode ? node.op : node instanceof FunctionNode ? node.identity : null),
  key: (node) => node.name,
  show: (known) => (known === null ? 'a backward of its own' : 'the same backward'),
  change: () => 'the tape has another operator or Function',
}

const freed: StateKind<GradNode, boolean> = {
  name: 'what a backward has freed',
  compile: 'tape',
  read: (node) => node.released,
  key: (node) => String(node.released),
  show: String,
  change: (_, is) => (is ? 'a backward has freed a part of the tape' : 'the whole tape is there'),
}

/** Of a node on the tape. {@link derivative} is null where only running a node tells what it does. */
export const tapeState: readonly StateKind<GradNode>[] = [derivative, freed]
