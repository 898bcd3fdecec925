// The garbage collector, where the host lets a program run it: Node can collect and run finalizers within a task; browsers cannot.

/** A FinalizationRegistry, which may run finalizers on request. */
export interface CleanupRegistry {
  register(target: object, held: number, token?: object): void
  unregister(token: object): boolean
  cleanupSome?(): void
}

export interface NodeCollector {
  readonly collect: () => void
  readonly Registry: { new (cleanup: (held: number) => void): CleanupRegistry; readonly prototype: CleanupRegistry }
}

/**
 * Node can run the collector and finalizers synchronously; browsers cannot. The flags of V8 that this takes are set only while a context is made that has the
 * functions, and are then as before.
 */
export function nodeCollector(): NodeCollector | null {
  const host = 'process' in globalThis ? globalThis.process : null
  const v8 = host?.getBuiltinModule?.('node:v8')
  const vm = host?.getBuiltinModule?.('node:vm')
  if (v8 === undefined || vm === undefined) return null
  try {
    // A program that was started with one of the flags keeps it.
    const [hadCollect, hadCleanup]: readonly [boolean, boolean] = vm.runInNewContext(
      `[typeof gc === 'function', typeof FinalizationRegistry.prototype.cleanupSome === 'function']`,
    )
    try {
      if (!hadCollect) v8.setFlagsFromString('--expose-gc')
      if (!hadCleanup) v8.setFlagsFromString('--harmony-weak-refs-with-cleanup-some')
      const [collect, Registry]: readonly [NodeCollector['collect'] | undefined, NodeCollector['Registry']] = vm.runInNewContext(
        '[globalThis.gc, FinalizationRegistry]',
      )
      return typeof collect === 'function' && typeof Registry.prototype.cleanupSome === 'function' ? { collect, Registry } : null
    } finally {
      if (!hadCollect) v8.setFlagsFromString('--no-expose-gc')
      if (!hadCleanup) v8.setFlagsFromString('--no-harmony-weak-refs-with-cleanup-some')
    }
  } catch {
    return null
  }
}
