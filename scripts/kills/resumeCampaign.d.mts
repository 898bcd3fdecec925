export declare function killAndResume(options: {
  readonly training: string
  readonly backend?: 'threads' | 'mpi'
  readonly kills: number
  readonly seed: number
  readonly steps?: number
  readonly say?: (line: string) => void
}): Promise<{ readonly findings: readonly string[]; readonly killed: number }>
