/** The logo of Strandfast: two strands around each other. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path class="mark-back" d="M10 5c0 7 12 7 12 11s-12 4-12 11" />
      <path class="mark-front" d="M22 5c0 7-12 7-12 11s12 4 12 11" />
    </svg>
  )
}
