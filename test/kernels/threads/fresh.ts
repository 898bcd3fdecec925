// The package anew, with a heap that threads share: whether it is shared is decided with the first tensor, so that the modules of other tests cannot be used.

/** The package on so many threads, which the file loads anew: `beforeEach(() => void vi.resetModules())`. Every loop is divided, as far as it can be, into chunks of one iteration or one vector. */
export async function onThreads(threads: number) {
  const { torch, compile } = await import('../../../src/index.ts')
  const { poolState } = await import('../../../src/kernels/threads/pool.ts')
  const { threadCosts } = await import('../../../src/kernels/threads/launch.ts')
  const { setWorkerHost, workerHost } = await import('../../../src/kernels/threads/workers.ts')
  const kernels = await import('../../../src/kernels/index.ts')
  torch.setNumThreads(threads)
  // The first tensor makes the heap, which is shared from now on.
  torch.zeros([1])
  Object.assign(threadCosts, { awake: 0, asleep: 0, chunk: 0, learns: false })
  return { torch, compile, poolState, threadCosts, setWorkerHost, workerHost, kernels }
}

/** Waits until workers take part: they start while this thread computes or waits. */
export async function untilReady(isReady: () => boolean): Promise<void> {
  for (let i = 0; i < 2000 && !isReady(); i++) await new Promise((resolve) => setTimeout(resolve, 5))
  if (!isReady()) throw new Error('no worker has started')
}

/** What `run` gives on one thread. */
export function onOne<T>({ torch }: Awaited<ReturnType<typeof onThreads>>, run: () => T): T {
  const threads = torch.getNumThreads()
  torch.setNumThreads(1)
  try {
    return run()
  } finally {
    torch.setNumThreads(threads)
  }
}
