// What a profile says of the nodes of a graph: plain data, which `tensorfx profile --json` writes and pages read.

/** What a node cost, summed over all runs of the profile. */
export interface NodeCost {
  readonly calls: number
  /**
   * Milliseconds. Where a kernel computes several nodes, each has an equal share of its time; but a product or a convolution has all of it, and what is fused into its kernel none, so
   * that the times of the nodes add up to that of the kernels.
   */
  readonly time: number
  /** Floating-point operations, and bytes that were read and stored. A kernel's are those of its first node. Null if they are not known. */
  readonly flops: number | null
  readonly bytes: number | null
  /** The kernel that computed it together with other nodes; null if it ran on its own. */
  readonly kernel: string | null
}

/** What a profile says of a graph. */
export interface GraphCosts {
  /** The path of the GraphModule, or the name of the compiled graph: `Net.block`, `compiled_graph_0`. */
  readonly graph: string
  /** Milliseconds of all its nodes. */
  readonly totalTime: number
  /** By the names of the nodes; those that cost nothing (inputs, views in compiled graphs) may be missing. */
  readonly nodes: Readonly<Record<string, NodeCost>>
}
