import { useEffect, useState } from 'preact/hooks'

/** Whether the system prefers dark, now and whenever that changes. */
export function useSystemIsDark(): boolean {
  const query = matchMedia('(prefers-color-scheme: dark)')
  const [isDark, setDark] = useState(query.matches)
  useEffect(() => {
    const follow = (event: MediaQueryListEvent): void => setDark(event.matches)
    query.addEventListener('change', follow)
    return () => query.removeEventListener('change', follow)
  }, [])
  return isDark
}
