export const bundledHome: string
export const bundledCommand: string
export function bundledFile(path: string): string
export function bundledUrl(path: string): string
