// FxNetAccNodesFinder: the nodes that run on the accelerator. PyTorch's torch.fx.passes.splitter_base.
import { checkCount } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { NodeEventTracker } from './nodeEventTracker.ts'
import type { OperatorSupportBase } from './operatorSupport.ts'
import { isCall } from '../nodes/calls.ts'
import { isNodeOutputTensor } from '../nodes/meta.ts'

/**
 * Finds the nodes that an accelerator can run: those that it supports, less those that would exchange values that are not tensors with the CPU. Needs the notes of
 * ShapeProp. PyTorch's FxNetAccNodesFinder.
 *
 *     const accNodes = new FxNetAccNodesFinder(gm, support, false).run()
 */
export class FxNetAccNodesFinder {
  /** Why each node is where it is. */
  readonly tracker: NodeEventTracker
  readonly #gm: GraphModule
  readonly #support: OperatorSupportBase
  readonly #allowNonTensor: boolean
  readonly #acc = new Set<Node>()

  /** `allowNonTensor`: the accelerator can take and return any values. `print` gets the lines that the tracker prints. */
  constructor(gm: GraphModule, operatorSupport: OperatorSupportBase, allowNonTensor: boolean, print?: (line: string) => void) {
    checkCount('FxNetAccNodesFinder', arguments, 4)
    this.#gm = gm
    this.#support = operatorSupport
    this.#allowNonTensor = allowNonTensor
    this.tracker = new NodeEventTracker(print)
  }

  /** The nodes for the accelerator, in graph order. */
  run(): Set<Node> {
    this.#acc.clear()
    for (const node of this.#gm.graph.nodes) this.tracker.add(node, this.#place(node))
    if (!this.#allowNonTensor) {
      this.#dropUsersOfNonTensors()
      this.#dropNonTensorOutputs()
    }
    return new Set(this.#acc)
  }

  #place(node: Node): string {
    if (!isCall(node)) return 'init_cpu|not_callable'
    if (!this.#support.isNodeSupported(this.#gm, node)) return 'init_cpu|operator_support'
    this.#acc.add(node)
    return 'init_acc|callable_and_operator_supported'
  }

  /** The accelerator cannot take a value from the CPU that is not a tensor. */
  #dropUsersOfNonTensors(): void {
    const onCpu: Node[] = []
    for (const node of this.#gm.graph.nodes) {
      if (!isCall(node) || this.#acc.has(node) || isNodeOutputTensor(node)) continue
      this.tracker.add(node, 'new_cpu_node|callable_non_tensor_input')
      onCpu.push(node)
    }
    this.#dropUsers(onCpu)
  }

  #dropUsers(onCpu: readonly Node[]): void {
    const queue = [...onCpu]
    for (const node of queue)
      for (const user of node.users) {
        if (!this.#acc.delete(user)) continue
        this.tracker.add(user, 'acc_del|user_of_new_cpu_node', node)
        if (isNodeOutputTensor(user)) continue
        this.tracker.add(user, 'new_cpu_node|non_tensor_output')
        queue.push(user)
      }
  }

  /** Only tensors can cross from the accelerator to the CPU. A node that leaves the accelerator may force its inputs to leave as well. */
  #dropNonTensorOutputs(): void {
    for (;;) {
      const dropped: Node[] = []
      for (const node of this.#acc) {
        if (isNodeOutputTensor(node)) continue
        const user = [...node.users].find((n) => !this.#acc.has(n))
        if (user === undefined) continue
        this.tracker.add(node, 'acc_del|non_tensor_output_with_cpu_user', user)
        dropped.push(node)
      }
      if (dropped.length === 0) return
      for (const node of dropped) this.#acc.delete(node)
      this.#dropUsers(dropped)
    }
  }
}
