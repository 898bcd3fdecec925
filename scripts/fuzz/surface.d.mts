export function loadSurface(load: (entry: string) => Promise<unknown>): Promise<{ readonly library: object; readonly reset: () => void }>
